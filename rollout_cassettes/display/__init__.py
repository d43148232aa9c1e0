"""How things look, on terminals and in notebooks: amounts, spark lines, tables, shades.

Nothing here knows what it is that is shown.
"""
