"""``--format html``: one page that needs no network, no scripts and no fonts of its own."""
