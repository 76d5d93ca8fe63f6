export interface BertSize {
  readonly hidden: number;
  readonly inner: number;
  readonly layers: number;
  readonly vocabulary: number;
  readonly positions: number;
  readonly tokenTypes: number;
}

/** The shapes of a BERT encoder's tensors by the names that transformers gives them, without a pooler. */
export function bertShapes(size: BertSize): Record<string, readonly number[]> {
  const { hidden, inner } = size;
  const shapes: Record<string, readonly number[]> = {
    'embeddings.word_embeddings.weight': [size.vocabulary, hidden],
    'embeddings.position_embeddings.weight': [size.positions, hidden],
    'embeddings.token_type_embeddings.weight': [size.tokenTypes, hidden],
  };
  const dense = (name: string, outputs: number, inputs: number): void => {
    shapes[`${name}.weight`] = [outputs, inputs];
    shapes[`${name}.bias`] = [outputs];
  };
  const norm = (name: string): void => {
    shapes[`${name}.weight`] = [hidden];
    shapes[`${name}.bias`] = [hidden];
  };
  norm('embeddings.LayerNorm');
  for (let layer = 0; layer < size.layers; layer++) {
    const at = `encoder.layer.${layer}`;
    for (const part of ['query', 'key', 'value']) dense(`${at}.attention.self.${part}`, hidden, hidden);
    dense(`${at}.attention.output.dense`, hidden, hidden);
    norm(`${at}.attention.output.LayerNorm`);
    dense(`${at}.intermediate.dense`, inner, hidden);
    dense(`${at}.output.dense`, hidden, inner);
    norm(`${at}.output.LayerNorm`);
  }
  return shapes;
}
