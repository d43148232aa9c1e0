"""How things look: amounts, spark lines, tables and views, on terminals and in notebooks.

Nothing here knows of files: it shows trajectories and figures.
"""
