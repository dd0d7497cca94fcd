"""Addresses of the REST API under /api/v1/."""

from django.urls import path

from . import jobs, readings, researchers, respondents

app_name = "api"
urlpatterns = [
    path("studies/", researchers.StudyList.as_view(), name="studies"),
    path("studies/<slug:slug>/", respondents.StudyInfo.as_view(), name="study"),
    path("studies/<slug:slug>/sittings/", respondents.SittingBegin.as_view(), name="sittings"),
    path("studies/<slug:slug>/stages/", researchers.StageList.as_view(), name="stages"),
    path("studies/<slug:slug>/answers/", researchers.AnswerList.as_view(), name="answers"),
    path("studies/<slug:slug>/answers.csv", researchers.AnswerFile.as_view(), name="answers-csv"),
    path("studies/<slug:slug>/reports/", researchers.ReportList.as_view(), name="reports"),
    path("studies/<slug:slug>/reports/<slug:name>/", researchers.ReportOfStudy.as_view(), name="report"),
    path("studies/<slug:slug>/reports/<slug:name>/files/", researchers.ReportFiles.as_view(), name="report-files"),
    path("studies/<slug:slug>/leaderboard/", researchers.Leaderboard.as_view(), name="leaderboard"),
    path("studies/<slug:slug>/estimates/", researchers.EstimatesOfStudy.as_view(), name="estimates"),
    path("readings/", readings.ReadingList.as_view(), name="readings"),
    path("studies/<slug:slug>/jobs/", jobs.JobList.as_view(), name="jobs"),
    path("studies/<slug:slug>/job-kinds/", jobs.JobKinds.as_view(), name="job-kinds"),
    path("jobs/<int:number>/", jobs.JobOne.as_view(), name="job"),
    path("jobs/<int:number>/files/<str:name>", jobs.JobFile.as_view(), name="job-file"),
    path("sitting/", respondents.CurrentStep.as_view(), name="sitting"),
    path("sitting/left/", respondents.LeftScreens.as_view(), name="sitting-left"),
    path("sitting/report/", respondents.QuestionReports.as_view(), name="sitting-report"),
]
