import { QWEN3 } from './reference-families.ts';
import { HIDDEN, type TinyFamily, VOCABULARY } from './tiny-checkpoint.ts';

const INNER = 24;

type Shapes = Record<string, readonly number[]>;

/** A decoder with grouped queries, whose heads together are wider than the hidden state. */
export const TINY_QWEN3: TinyFamily = {
  shapes: qwen3Shapes(),
  config: {
    model_type: 'qwen3',
    architectures: ['Qwen3ForCausalLM'],
    vocab_size: VOCABULARY,
    hidden_size: HIDDEN,
    intermediate_size: INNER,
    num_hidden_layers: QWEN3.layers,
    num_attention_heads: 4,
    num_key_value_heads: 2,
    head_dim: QWEN3.headSize,
    rms_norm_eps: QWEN3.epsilon,
    rope_theta: QWEN3.base,
    hidden_act: 'silu',
    attention_bias: false,
    use_sliding_window: false,
    max_position_embeddings: 32768,
  },
  files: { '1_Pooling/config.json': { pooling_mode_lasttoken: true } },
};

function qwen3Shapes(): Shapes {
  const { headSize } = QWEN3;
  const shapes: Shapes = { 'embed_tokens.weight': [VOCABULARY, HIDDEN], 'norm.weight': [HIDDEN] };
  for (let i = 0; i < QWEN3.layers; i++) {
    const name = `layers.${i}`;
    shapes[`${name}.input_layernorm.weight`] = [HIDDEN];
    shapes[`${name}.post_attention_layernorm.weight`] = [HIDDEN];
    shapes[`${name}.self_attn.q_proj.weight`] = [4 * headSize, HIDDEN];
    shapes[`${name}.self_attn.k_proj.weight`] = [2 * headSize, HIDDEN];
    shapes[`${name}.self_attn.v_proj.weight`] = [2 * headSize, HIDDEN];
    shapes[`${name}.self_attn.o_proj.weight`] = [HIDDEN, 4 * headSize];
    shapes[`${name}.self_attn.q_norm.weight`] = [headSize];
    shapes[`${name}.self_attn.k_norm.weight`] = [headSize];
    shapes[`${name}.mlp.gate_proj.weight`] = [INNER, HIDDEN];
    shapes[`${name}.mlp.up_proj.weight`] = [INNER, HIDDEN];
    shapes[`${name}.mlp.down_proj.weight`] = [HIDDEN, INNER];
  }
  return shapes;
}
