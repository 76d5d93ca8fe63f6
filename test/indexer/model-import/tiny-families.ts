import { GTE, MODERNBERT, NOMIC, QWEN3, T5 } from './reference-families.ts';
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

/** The config as the hub's repositories have it. */
export const TINY_MODERNBERT: TinyFamily = {
  shapes: modernBertShapes(),
  config: {
    model_type: 'modernbert',
    architectures: ['ModernBertForMaskedLM'],
    vocab_size: VOCABULARY,
    hidden_size: HIDDEN,
    intermediate_size: INNER,
    num_hidden_layers: MODERNBERT.layers,
    num_attention_heads: MODERNBERT.heads,
    hidden_activation: 'gelu',
    norm_eps: MODERNBERT.epsilon,
    global_attn_every_n_layers: 3,
    local_attention: MODERNBERT.window,
    global_rope_theta: MODERNBERT.globalBase,
    local_rope_theta: MODERNBERT.localBase,
    attention_bias: false,
    mlp_bias: false,
    norm_bias: false,
    max_position_embeddings: 8192,
    pad_token_id: 0,
  },
};

function modernBertShapes(): Shapes {
  const shapes: Shapes = {
    'embeddings.tok_embeddings.weight': [VOCABULARY, HIDDEN],
    'embeddings.norm.weight': [HIDDEN],
    'final_norm.weight': [HIDDEN],
  };
  for (let i = 0; i < MODERNBERT.layers; i++) {
    const name = `layers.${i}`;
    if (i > 0) shapes[`${name}.attn_norm.weight`] = [HIDDEN];
    shapes[`${name}.attn.Wqkv.weight`] = [3 * HIDDEN, HIDDEN];
    shapes[`${name}.attn.Wo.weight`] = [HIDDEN, HIDDEN];
    shapes[`${name}.mlp_norm.weight`] = [HIDDEN];
    shapes[`${name}.mlp.Wi.weight`] = [2 * INNER, HIDDEN];
    shapes[`${name}.mlp.Wo.weight`] = [HIDDEN, INNER];
  }
  return shapes;
}

/** The tensors of a cross-encoder's head. */
export const MODERNBERT_HEAD: Shapes = {
  'head.dense.weight': [HIDDEN, HIDDEN],
  'head.norm.weight': [HIDDEN],
  'classifier.weight': [1, HIDDEN],
  'classifier.bias': [1],
};

/** The config with the names of GPT-2, as the hub's repositories have it. */
export const TINY_NOMIC: TinyFamily = {
  shapes: nomicShapes(),
  config: {
    model_type: 'nomic_bert',
    architectures: ['NomicBertModel'],
    vocab_size: VOCABULARY,
    n_embd: HIDDEN,
    n_head: NOMIC.heads,
    n_inner: INNER,
    n_layer: NOMIC.layers,
    n_positions: 8192,
    max_trained_positions: 2048,
    rotary_emb_base: NOMIC.base,
    rotary_emb_fraction: 1,
    rotary_emb_interleaved: false,
    activation_function: 'swiglu',
    layer_norm_epsilon: NOMIC.epsilon,
    qkv_proj_bias: false,
    mlp_fc1_bias: false,
    mlp_fc2_bias: false,
    prenorm: false,
    type_vocab_size: 2,
  },
};

function nomicShapes(): Shapes {
  const shapes: Shapes = {
    'embeddings.word_embeddings.weight': [VOCABULARY, HIDDEN],
    'embeddings.token_type_embeddings.weight': [2, HIDDEN],
    ...normShapes('emb_ln'),
  };
  for (let i = 0; i < NOMIC.layers; i++) {
    const name = `encoder.layers.${i}`;
    shapes[`${name}.attn.Wqkv.weight`] = [3 * HIDDEN, HIDDEN];
    shapes[`${name}.attn.out_proj.weight`] = [HIDDEN, HIDDEN];
    shapes[`${name}.mlp.fc11.weight`] = [INNER, HIDDEN];
    shapes[`${name}.mlp.fc12.weight`] = [INNER, HIDDEN];
    shapes[`${name}.mlp.fc2.weight`] = [HIDDEN, INNER];
    Object.assign(shapes, normShapes(`${name}.norm1`), normShapes(`${name}.norm2`));
  }
  return shapes;
}

/** With the names of the hub's repositories (`new`). */
export const TINY_GTE: TinyFamily = {
  shapes: gteShapes(),
  config: {
    model_type: 'new',
    architectures: ['NewModel'],
    vocab_size: VOCABULARY,
    hidden_size: HIDDEN,
    num_hidden_layers: NOMIC.layers,
    num_attention_heads: NOMIC.heads,
    intermediate_size: INNER,
    hidden_act: 'gelu',
    layer_norm_eps: NOMIC.epsilon,
    layer_norm_type: 'layer_norm',
    position_embedding_type: 'rope',
    rope_theta: GTE.base,
    rope_scaling: { type: 'ntk', factor: GTE.factor },
    logn_attention_scale: false,
    max_position_embeddings: 8192,
    type_vocab_size: 1,
  },
};

function gteShapes(): Shapes {
  const shapes: Shapes = {
    'embeddings.word_embeddings.weight': [VOCABULARY, HIDDEN],
    'embeddings.token_type_embeddings.weight': [1, HIDDEN],
    ...normShapes('embeddings.LayerNorm'),
  };
  const dense = (name: string, outputs: number, inputs: number): Shapes => ({
    [`${name}.weight`]: [outputs, inputs],
    [`${name}.bias`]: [outputs],
  });
  for (let i = 0; i < NOMIC.layers; i++) {
    const name = `encoder.layer.${i}`;
    Object.assign(
      shapes,
      dense(`${name}.attention.qkv_proj`, 3 * HIDDEN, HIDDEN),
      dense(`${name}.attention.o_proj`, HIDDEN, HIDDEN),
      { [`${name}.mlp.up_gate_proj.weight`]: [2 * INNER, HIDDEN] },
      dense(`${name}.mlp.down_proj`, HIDDEN, INNER),
      normShapes(`${name}.attn_ln`),
      normShapes(`${name}.mlp_ln`),
    );
  }
  return shapes;
}

function normShapes(name: string): Shapes {
  return { [`${name}.weight`]: [HIDDEN], [`${name}.bias`]: [HIDDEN] };
}

/** As sentence-transformers saves GTR, without the Dense module. */
export const TINY_T5: TinyFamily = {
  shapes: t5Shapes(),
  config: {
    model_type: 't5',
    architectures: ['T5EncoderModel'],
    vocab_size: VOCABULARY,
    d_model: HIDDEN,
    d_kv: T5.headSize,
    d_ff: INNER,
    num_layers: T5.layers,
    num_heads: T5.heads,
    feed_forward_proj: 'relu',
    layer_norm_epsilon: T5.epsilon,
    relative_attention_num_buckets: 32,
    relative_attention_max_distance: 128,
    n_positions: 512,
  },
  files: { '1_Pooling/config.json': { pooling_mode: 'mean' } },
};

function t5Shapes(): Shapes {
  const width = T5.heads * T5.headSize;
  const shapes: Shapes = {
    'shared.weight': [VOCABULARY, HIDDEN],
    'encoder.block.0.layer.0.SelfAttention.relative_attention_bias.weight': [32, T5.heads],
    'encoder.final_layer_norm.weight': [HIDDEN],
  };
  for (let i = 0; i < T5.layers; i++) {
    const name = `encoder.block.${i}`;
    shapes[`${name}.layer.0.layer_norm.weight`] = [HIDDEN];
    for (const part of ['q', 'k', 'v']) shapes[`${name}.layer.0.SelfAttention.${part}.weight`] = [width, HIDDEN];
    shapes[`${name}.layer.0.SelfAttention.o.weight`] = [HIDDEN, width];
    shapes[`${name}.layer.1.layer_norm.weight`] = [HIDDEN];
    shapes[`${name}.layer.1.DenseReluDense.wi.weight`] = [INNER, HIDDEN];
    shapes[`${name}.layer.1.DenseReluDense.wo.weight`] = [HIDDEN, INNER];
  }
  return shapes;
}
