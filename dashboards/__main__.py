"""Streamlit's command line, for a server that asks nobody who it is.

Of WebSockets with a foreign Origin, Streamlit lets in what comes from this machine's public address. It asks
checkip.amazonaws.com for that over plain HTTP, for each of them, and answers nobody meanwhile: any web page
could hold up the dashboard, and whoever answers in Amazon's place would choose who is let in.
"""

from streamlit import net_util
from streamlit.web.cli import main

if __name__ == "__main__":
    net_util.get_external_ip = lambda: None
    main(prog_name="streamlit")
