"""Addresses of the REST API under /api/v1/."""

from django.urls import path

from . import index, jobs, readings, receivers, researchers, respondents, running

app_name = "api"
urlpatterns = [
    path("", index.Index.as_view(), name="index"),
    path("studies/", running.Studies.as_view(), name="studies"),
    path("studies/<slug:slug>/", respondents.StudyInfo.as_view(), name="study"),
    path("studies/<slug:slug>/sittings/", respondents.SittingBegin.as_view(), name="sittings"),
    path("studies/<slug:slug>/stages/", researchers.StageList.as_view(), name="stages"),
    path("studies/<slug:slug>/stages/<int:index>/", running.OneStage.as_view(), name="stage"),
    path("studies/<slug:slug>/stages/<int:index>/<slug:action>/", running.ActOnStage.as_view(), name="stage-action"),
    path("studies/<slug:slug>/overview/", running.Overview.as_view(), name="overview"),
    path("studies/<slug:slug>/file/", running.StudyFile.as_view(), name="file"),
    path("studies/<slug:slug>/steps/", running.StepList.as_view(), name="steps"),
    path("studies/<slug:slug>/runs/", running.RunList.as_view(), name="runs"),
    path("studies/<slug:slug>/postings/", running.PostingList.as_view(), name="postings"),
    path("studies/<slug:slug>/waves/<int:wave>/invite/", running.InviteToWave.as_view(), name="wave-invite"),
    path("studies/<slug:slug>/answers/", researchers.AnswerList.as_view(), name="answers"),
    path("studies/<slug:slug>/answers.csv", researchers.AnswerFile.as_view(), name="answers-csv"),
    path("studies/<slug:slug>/reports/", researchers.ReportList.as_view(), name="reports"),
    path("studies/<slug:slug>/reports/<slug:name>/", researchers.ReportOfStudy.as_view(), name="report"),
    path("studies/<slug:slug>/reports/<slug:name>/files/", researchers.ReportFiles.as_view(), name="report-files"),
    path("studies/<slug:slug>/leaderboard/", researchers.Leaderboard.as_view(), name="leaderboard"),
    path("studies/<slug:slug>/estimates/", researchers.EstimatesOfStudy.as_view(), name="estimates"),
    path("studies/<slug:slug>/receivers/", receivers.ReceiverList.as_view(), name="receivers"),
    path("studies/<slug:slug>/receivers/<int:receiver>/", receivers.ReceiverOne.as_view(), name="receiver"),
    path("studies/<slug:slug>/receivers/<int:receiver>/test/", receivers.ReceiverTest.as_view(), name="receiver-test"),
    path("readings/", readings.ReadingList.as_view(), name="readings"),
    path("studies/<slug:slug>/jobs/", jobs.JobList.as_view(), name="jobs"),
    path("studies/<slug:slug>/job-kinds/", jobs.JobKinds.as_view(), name="job-kinds"),
    path("jobs/<int:number>/", jobs.JobOne.as_view(), name="job"),
    path("jobs/<int:number>/files/<str:name>", jobs.JobFile.as_view(), name="job-file"),
    path("sitting/", respondents.CurrentStep.as_view(), name="sitting"),
    path("sitting/left/", respondents.LeftScreens.as_view(), name="sitting-left"),
    path("sitting/report/", respondents.QuestionReports.as_view(), name="sitting-report"),
]
