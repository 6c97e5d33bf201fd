"""Public reports of EAGLE-3 drafts that failed or lost acceptance, each as a small draft.

``threads.py`` names the reports, the modules beside it hold the drafts and what is expected of
them, ``elsewhere.py`` says why some reports have none, and ``table.py`` prints the table of
docs/public-cases.md.
"""
