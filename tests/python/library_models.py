"""Models of timm and transformers, unchanged, from small configurations with random weights."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable
from typing import Any

import torch
from torch import nn
from torch_models import Case, class_loss, generator_of, image_batches, language_loss, token_batches

WORDS = 101


@dataclasses.dataclass(frozen=True)
class LibraryCase(Case):
    """
    Attributes:
        has_kinks: whether batch norm over few elements is followed by functions with kinks: an
            activation within rounding of one gives another gradient, in eager torch as well.
    """

    has_kinks: bool = False


def _timm(name: str, has_kinks: bool = False, side: int = 64, **options: Any) -> LibraryCase:
    def make() -> nn.Module:
        import timm

        return timm.create_model(name, num_classes=10, **options)

    return LibraryCase(make, image_batches(2, 3, side, 10), class_loss, has_kinks)


def _transformer(
    model: str,
    configuration: str,
    options: dict[str, Any],
    batch: Callable[[int], Any] = token_batches(2, 12, WORDS),
    loss: Callable[..., torch.Tensor] = language_loss,
) -> LibraryCase:
    def make() -> nn.Module:
        import transformers

        return getattr(transformers, model)(getattr(transformers, configuration)(**options))

    return LibraryCase(make, batch, loss)


def _spectrogram_batch(step: int) -> Any:
    generator = generator_of(step)
    features = torch.randn(2, 16, 32, generator=generator)
    return features, torch.randint(5, WORDS, (2, 8), generator=generator)


_SIZES: dict[str, Any] = {
    "hidden_size": 32,
    "num_hidden_layers": 2,
    "num_attention_heads": 2,
    "intermediate_size": 64,
}
_NO_DROPOUT = {"hidden_dropout_prob": 0.0, "attention_probs_dropout_prob": 0.0}
_ENCODER = {**_SIZES, **_NO_DROPOUT, "vocab_size": WORDS, "max_position_embeddings": 40}
_DECODER = {**_SIZES, "vocab_size": WORDS, "max_position_embeddings": 32, "use_cache": False}
_PAIR: dict[str, Any] = {
    "vocab_size": WORDS,
    "d_model": 32,
    "encoder_layers": 2,
    "decoder_layers": 2,
    "encoder_attention_heads": 2,
    "decoder_attention_heads": 2,
    "encoder_ffn_dim": 64,
    "decoder_ffn_dim": 64,
    "dropout": 0.0,
    "use_cache": False,
}

CASES: dict[str, LibraryCase] = {
    "mobilenetv3": _timm("mobilenetv3_small_100", has_kinks=True),
    "efficientnet": _timm("efficientnet_b0", has_kinks=True),
    "convnext": _timm("convnext_atto", depths=(1, 1, 2, 1)),
    "vit": _timm("vit_tiny_patch16_224", img_size=64, depth=2),
    "mixer": _timm("mixer_s32_224", img_size=64),
    "regnet": _timm("regnety_002", has_kinks=True),
    "densenet": _timm("densenet121", has_kinks=True, block_config=(2, 2, 2, 2)),
    "resnext": _timm("resnext50_32x4d", has_kinks=True, layers=(1, 1, 1, 1)),
    "swin": _timm(
        "swin_tiny_patch4_window7_224",
        side=56,
        img_size=56,
        embed_dim=32,
        depths=(2, 2),
        num_heads=(2, 4),
        drop_path_rate=0.0,
    ),
    "mobilevit": _timm("mobilevit_xxs", has_kinks=True),
    "distilbert": _transformer(
        "DistilBertForMaskedLM",
        "DistilBertConfig",
        {
            "vocab_size": WORDS,
            "dim": 32,
            "n_layers": 2,
            "n_heads": 2,
            "hidden_dim": 64,
            "max_position_embeddings": 32,
            "dropout": 0.0,
            "attention_dropout": 0.0,
        },
    ),
    "roberta": _transformer("RobertaForMaskedLM", "RobertaConfig", _ENCODER),
    "albert": _transformer(
        "AlbertForMaskedLM", "AlbertConfig", {**_ENCODER, "embedding_size": 16}
    ),
    "electra": _transformer(
        "ElectraForMaskedLM", "ElectraConfig", {**_ENCODER, "embedding_size": 16}
    ),
    "t5": _transformer(
        "T5ForConditionalGeneration",
        "T5Config",
        {
            "vocab_size": WORDS,
            "d_model": 32,
            "d_kv": 16,
            "d_ff": 64,
            "num_layers": 2,
            "num_heads": 2,
            "dropout_rate": 0.0,
            "decoder_start_token_id": 0,
        },
    ),
    "llama": _transformer(
        "LlamaForCausalLM",
        "LlamaConfig",
        {**_DECODER, "num_attention_heads": 4, "num_key_value_heads": 2},
    ),
    "qwen2": _transformer(
        "Qwen2ForCausalLM",
        "Qwen2Config",
        {**_DECODER, "num_attention_heads": 4, "num_key_value_heads": 2},
    ),
    "opt": _transformer(
        "OPTForCausalLM",
        "OPTConfig",
        {**_DECODER, "ffn_dim": 64, "word_embed_proj_dim": 32, "dropout": 0.0},
    ),
    "mixtral": _transformer(
        "MixtralForCausalLM",
        "MixtralConfig",
        {
            **_DECODER,
            "num_attention_heads": 4,
            "num_key_value_heads": 2,
            "num_local_experts": 4,
        },
    ),
    "gpt-neox": _transformer("GPTNeoXForCausalLM", "GPTNeoXConfig", _DECODER),
    "bart": _transformer(
        "BartForConditionalGeneration",
        "BartConfig",
        {**_PAIR, "max_position_embeddings": 32},
    ),
    "whisper": _transformer(
        "WhisperForConditionalGeneration",
        "WhisperConfig",
        {
            **_PAIR,
            "num_mel_bins": 16,
            "max_source_positions": 16,
            "max_target_positions": 16,
            "pad_token_id": 0,
            "bos_token_id": 1,
            "eos_token_id": 2,
            "decoder_start_token_id": 1,
            "begin_suppress_tokens": None,
            "suppress_tokens": None,
        },
        _spectrogram_batch,
        lambda model, features, words: model(input_features=features, labels=words).loss,
    ),
    "vit-transformers": _transformer(
        "ViTForImageClassification",
        "ViTConfig",
        {**_SIZES, **_NO_DROPOUT, "image_size": 32, "patch_size": 8, "num_labels": 10},
        image_batches(2, 3, 32, 10),
        lambda model, x, classes: model(pixel_values=x, labels=classes).loss,
    ),
}
