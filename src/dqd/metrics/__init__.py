"""What else an archive is worth: functions of results, live archives and saved ones. Never imports JAX."""

from dqd.metrics.area import qd_score_auc as qd_score_auc
from dqd.metrics.continuous import cqd_score as cqd_score
from dqd.metrics.corrected import corrected_qd_score as corrected_qd_score
from dqd.metrics.soft import soft_qd_score as soft_qd_score
from dqd.metrics.vendi import quality_vendi_score as quality_vendi_score
from dqd.metrics.vendi import vendi_score as vendi_score

__all__ = [
    "corrected_qd_score",
    "cqd_score",
    "qd_score_auc",
    "quality_vendi_score",
    "soft_qd_score",
    "vendi_score",
]
