"""Commands of the shell, one file for each group of them."""
