"""What all pages of the admin are built on, an instrument's too. The pages themselves are in survey/admin."""
