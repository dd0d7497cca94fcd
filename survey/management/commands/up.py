"""`manage.py up`: all services under one process manager, until Ctrl-C."""

from argparse import ArgumentParser
from typing import Any

from django.conf import settings
from django.core.management import BaseCommand, CommandError, call_command

from survey import system_checks
from survey.processes.process_manager import ServicesError, run_services
from survey.services.base import first_account, keys


class Command(BaseCommand):
    help = "Start web, workers and beat (and Redis, unless REDIS_URL names one), until Ctrl-C."
    requires_system_checks: Any = (system_checks.OURS,)

    def add_arguments(self, parser: ArgumentParser) -> None:
        parser.add_argument("--port", type=int, default=settings.HUNCH_PORT, help="where web listens on loopback")
        parser.add_argument("--verbose", action="store_true", help="show what every service writes")

    def handle(self, *args: Any, port: int, verbose: bool, **options: Any) -> None:
        if settings.IN_PRODUCTION:
            raise CommandError("`up` is for one machine; in production run the services of docker-compose.yml")
        call_command("migrate", verbosity=0, interactive=False, skip_checks=False)
        try:
            keys.check()
        except keys.KeysDiffer as exc:
            raise CommandError(exc.message) from exc
        self.stdout.write(f"Database ready: {settings.DATABASES['default']['NAME']}")
        try:
            with run_services(port=port, verbose=verbose, say=self.stdout.write) as services:
                services.wait_healthy()
                self.stdout.write(f"Survey pages  {services.base_url}/s/STUDY/")
                self.stdout.write(f"Admin         {services.base_url}/admin/")
                if secret := first_account.offer():
                    self.stdout.write(f"First account {services.base_url}{first_account.path(secret)}")
                    self.stdout.write("              (there is no account yet; works once, for 24 hours)")
                self.stdout.write(f"API           {services.base_url}/api/docs/")
                self.stdout.write(f"Logs          {services.logs}")
                self.stdout.write("Ctrl-C ends all of it.")
                services.wait()
        except KeyboardInterrupt:
            self.stdout.write("Stopped.")
        except ServicesError as exc:
            raise CommandError(str(exc)) from exc
