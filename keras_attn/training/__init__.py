"""Learning-rate schedules, losses, metrics, fine-tuning and callbacks."""

from keras_attn.training.bucketed_dataset import BucketedDataset
from keras_attn.training.checkpoint_average import CheckpointAverage
from keras_attn.training.freezing import freeze, unfreeze
from keras_attn.training.layerwise_learning_rates import LayerwiseLearningRates
from keras_attn.training.layerwise_lr_multipliers import (
    layerwise_lr_multipliers,
)
from keras_attn.training.lora import enable_lora
from keras_attn.training.perplexity import Perplexity
from keras_attn.training.process_agreement import check_processes_agree
from keras_attn.training.sequence_crossentropy import SequenceCrossentropy
from keras_attn.training.token_accuracy import TokenAccuracy
from keras_attn.training.training_backup import TrainingBackup
from keras_attn.training.training_progress import TrainingProgress
from keras_attn.training.warmup_schedule import WarmupSchedule

__all__ = [
    "BucketedDataset",
    "CheckpointAverage",
    "LayerwiseLearningRates",
    "Perplexity",
    "SequenceCrossentropy",
    "TokenAccuracy",
    "TrainingBackup",
    "TrainingProgress",
    "WarmupSchedule",
    "check_processes_agree",
    "enable_lora",
    "freeze",
    "layerwise_lr_multipliers",
    "unfreeze",
]
