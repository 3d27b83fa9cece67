"""The store as a DuckLake: Parquet on a shared disk or in an object store, with a catalog."""

__all__: list[str] = []
