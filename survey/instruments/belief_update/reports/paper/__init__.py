"""The paper's tables 1 to 5 and figures 2 to 7, of a study and from files."""
