"""Links for a lab: each lets one person begin. Making and claiming one is `services.sittings.links`."""
