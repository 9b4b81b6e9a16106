"""What happens between the table of a user and coefficients: recipe, preludes, records, session."""
