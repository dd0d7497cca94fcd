"""Running the service: finding what is wrong, sending alerts, pausing postings. Imports panels and services."""
