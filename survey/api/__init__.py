"""REST: views with their serializers. A view parses, calls a service, and answers."""
