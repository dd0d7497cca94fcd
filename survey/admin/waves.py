"""The page on which people are invited to a later wave."""

from django.contrib import messages
from django.http import Http404, HttpRequest, HttpResponse, HttpResponseRedirect
from django.urls import URLPattern, path, reverse
from django.utils import timezone

from survey.contracts import panels
from survey.exceptions import HunchError
from survey.models import Sitting
from survey.panels import inviting
from survey.services.sittings import waves

from .test_copies import TestCopyPages


class WavePages(TestCopyPages):
    """Mixed into the study's admin."""

    def get_urls(self) -> list[URLPattern]:
        wrap = self.admin_site.admin_view
        return [
            path("<int:pk>/waves/<int:wave>/", wrap(self.wave_view), name="survey_study_wave"),
            *super().get_urls(),
        ]

    def wave_view(self, request: HttpRequest, pk: int, wave: int) -> HttpResponse:
        """GET asks first, with how many can come. POST invites them; links come as a file, in the answer itself: a
        redirect would mean that they are stored in between."""
        study = self._study(request, pk)
        study = self._study(request, pk, inviting.right_needed(study))
        if not 2 <= wave <= len(study.config.waves) + 1:
            raise Http404
        if request.method == "POST":
            try:
                root = request.build_absolute_uri("/").rstrip("/")
                invited = inviting.invite(study, wave, root=root, by=request.user, via="admin")
            except HunchError as exc:
                messages.error(request, exc.message)
                return HttpResponseRedirect(reverse("admin:survey_study_wave", args=[pk, wave]))
            if invited.links:
                response = HttpResponse("".join(inviting.lines_of(invited)), content_type="text/csv; charset=utf-8")
                response["Content-Disposition"] = f'attachment; filename="{study.slug}-wave-{wave}-links.csv"'
                return response
            messages.success(request, invited.sentence)
            return HttpResponseRedirect(reverse("admin:survey_study_wave", args=[pk, wave]))
        now = timezone.now()
        due = waves.due_for(study, wave, now=now)
        panel = panels.of_study(study)
        return self._page(
            request,
            "wave.html",
            title=f"Invite people of {study.slug} to wave {wave}",
            study=study,
            wave=wave,
            config=study.config.waves[wave - 2],
            due=len(due),
            ready=sum(candidate.window.opens <= now for candidate in due),
            came=Sitting.objects.filter(respondent__study=study, wave=wave).count(),
            by_links=panel.invites_by_links,
            panel=panel.title,
        )
