"""How gunicorn serves the web process (`gunicorn -c python:survey.gunicorn_config survey.wsgi`). Imports settings only.

Neither the access line nor gunicorn's own error lines may carry a query string or a referrer: a panel's entry address
holds the ids of a person. So the access format names neither, and every line goes through our formatter.
"""

from django.conf import settings

bind = f"0.0.0.0:{settings.HUNCH_PORT}"  # the process manager passes a loopback socket instead
worker_class = "gthread"
workers = settings.HUNCH_WEB_WORKERS
threads = 4
timeout = 60
graceful_timeout = 20
max_requests = 20_000
max_requests_jitter = 2_000
control_socket_disable = True
accesslog = "-"
access_log_format = '%(h)s "%(m)s %(U)s" %(s)s %(B)s bytes %(M)s ms'
logconfig_dict = {
    "formatters": settings.LOGGING["formatters"],
    "handlers": settings.LOGGING["handlers"],
    "root": {"handlers": ["console"], "level": settings.HUNCH_LOG_LEVEL},
    "loggers": {
        "gunicorn.error": {"handlers": ["console"], "level": settings.HUNCH_LOG_LEVEL, "propagate": False},
        "gunicorn.access": {"handlers": ["console"], "level": settings.HUNCH_LOG_LEVEL, "propagate": False},
    },
}
