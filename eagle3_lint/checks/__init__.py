"""The rules' eyes: one module per hundred. Each yields Findings; the catalogue has the words."""
