"""People in the loop: Label Studio, and the statistics of what raters said."""

__all__: list[str] = []
