"""REST: views with their serializers. Parse, call a service, answer."""
