/** A BERT encoder in float64, written from the papers' formulas. Imported graphs are compared with it. */

export interface ReferenceTensor {
  readonly shape: readonly number[];
  readonly values: ArrayLike<number>;
}

export interface ReferenceConfig {
  readonly layers: number;
  readonly heads: number;
  readonly epsilon: number;
  readonly activation: (x: number) => number;
  /** Null for positions 0, 1, 2, …; for RoBERTa the padding id, after which its positions begin. */
  readonly padding: number | null;
}

type Row = number[];

export class ReferenceEncoder {
  readonly #tensors: Readonly<Record<string, ReferenceTensor>>;
  readonly #config: ReferenceConfig;

  constructor(tensors: Readonly<Record<string, ReferenceTensor>>, config: ReferenceConfig) {
    this.#tensors = tensors;
    this.#config = config;
  }

  /** The last hidden state of one text; tokens where `mask` is 0 are not attended. */
  hidden(ids: readonly number[], types: readonly number[], mask: readonly number[]): Row[] {
    const { padding } = this.#config;
    let count = 0;
    let rows = ids.map((id, i) => {
      if (id !== padding) count++;
      const position = padding === null ? i : id === padding ? padding : padding + count;
      const sum = add(
        this.#row('embeddings.word_embeddings.weight', id),
        this.#row('embeddings.position_embeddings.weight', position),
      );
      return this.#norm(
        'embeddings.LayerNorm',
        add(sum, this.#row('embeddings.token_type_embeddings.weight', types[i]!)),
      );
    });
    for (let layer = 0; layer < this.#config.layers; layer++) rows = this.#layer(`encoder.layer.${layer}`, rows, mask);
    return rows;
  }

  /** tanh of a dense layer of the first token. */
  pooled(hidden: readonly Row[], name = 'pooler.dense'): Row {
    return this.dense(name, hidden[0]!).map(Math.tanh);
  }

  dense(name: string, input: Row): Row {
    const weight = this.#tensors[`${name}.weight`]!;
    const bias = this.#tensors[`${name}.bias`]!;
    const [outputs, inputs] = weight.shape as [number, number];
    return Array.from({ length: outputs }, (_, row) => {
      let sum = bias.values[row]!;
      for (let i = 0; i < inputs; i++) sum += weight.values[row * inputs + i]! * input[i]!;
      return sum;
    });
  }

  #layer(name: string, rows: readonly Row[], mask: readonly number[]): Row[] {
    const [query, key, value] = ['query', 'key', 'value'].map((part) =>
      rows.map((row) => this.dense(`${name}.attention.self.${part}`, row)),
    ) as [Row[], Row[], Row[]];
    const size = rows[0]!.length / this.#config.heads;
    return rows.map((row, at) => {
      const context: Row = [];
      for (let head = 0; head < this.#config.heads; head++) {
        const columns = Array.from({ length: size }, (_, i) => head * size + i);
        const weights = key.map((other, i) =>
          mask[i] === 0
            ? 0
            : Math.exp(columns.reduce((sum, c) => sum + query[at]![c]! * other[c]!, 0) / Math.sqrt(size)),
        );
        const total = weights.reduce((sum, weight) => sum + weight, 0);
        for (const c of columns)
          context.push(value.reduce((sum, other, i) => sum + (weights[i]! / total) * other[c]!, 0));
      }
      const attended = this.#norm(
        `${name}.attention.output.LayerNorm`,
        add(row, this.dense(`${name}.attention.output.dense`, context)),
      );
      const inner = this.dense(`${name}.intermediate.dense`, attended).map(this.#config.activation);
      return this.#norm(`${name}.output.LayerNorm`, add(attended, this.dense(`${name}.output.dense`, inner)));
    });
  }

  #row(name: string, row: number): Row {
    const { shape, values } = this.#tensors[name]!;
    const columns = shape[1]!;
    return Array.from({ length: columns }, (_, i) => values[row * columns + i]!);
  }

  #norm(name: string, row: Row): Row {
    const mean = row.reduce((sum, x) => sum + x, 0) / row.length;
    const variance = row.reduce((sum, x) => sum + (x - mean) ** 2, 0) / row.length;
    const scale = this.#tensors[`${name}.weight`]!.values;
    const bias = this.#tensors[`${name}.bias`]!.values;
    return row.map((x, i) => ((x - mean) / Math.sqrt(variance + this.#config.epsilon)) * scale[i]! + bias[i]!);
  }
}

export function gelu(x: number): number {
  return (x * (1 + erf(x / Math.SQRT2))) / 2;
}

export function geluTanh(x: number): number {
  return (x * (1 + Math.tanh(Math.sqrt(2 / Math.PI) * (x + 0.044715 * x ** 3)))) / 2;
}

export function relu(x: number): number {
  return Math.max(0, x);
}

/** Maclaurin series. Beyond |x| = 5 its terms cancel; there erf is 1 to within 2e-12. */
function erf(x: number): number {
  if (Math.abs(x) > 5) return Math.sign(x);
  let term = x;
  let sum = x;
  for (let n = 1; Math.abs(term) > 1e-18; n++) {
    term *= -(x * x) / n;
    sum += term / (2 * n + 1);
  }
  return (2 / Math.sqrt(Math.PI)) * sum;
}

function add(a: Row, b: Row): Row {
  return a.map((x, i) => x + b[i]!);
}
