import { TrawlError } from '../../base/errors.ts';
import type { Pooling } from '../identity/model-identity.ts';

/** An output as onnxruntime describes it. */
interface OutputFacts {
  readonly name: string;
  readonly isTensor: boolean;
  /** Of a tensor; empty if it is not known. */
  readonly shape?: readonly (number | string)[];
}

/** Names that exporters give to outputs, by use, the most common first. */
const TOKEN_OUTPUTS = ['last_hidden_state', 'token_embeddings'];
const OUTPUTS: Readonly<Record<Pooling | 'score', readonly string[]>> = {
  mean: TOKEN_OUTPUTS,
  cls: TOKEN_OUTPUTS,
  last: TOKEN_OUTPUTS,
  pooler: ['pooler_output'],
  none: ['sentence_embedding'],
  score: ['logits'],
};

/** The output that is read: `outputName`, or the one that `use` needs. @throws TrawlError MODEL_INVALID if the graph lacks it. */
export function chooseOutput(
  outputs: readonly string[],
  path: string,
  use: Pooling | 'score',
  outputName: string | null,
): string {
  const wanted = outputName === null ? OUTPUTS[use] : [outputName];
  const found = wanted.find((name) => outputs.includes(name));
  if (found !== undefined) return found;
  const hint = outputs.includes('sentence_embedding')
    ? ' Its sentence_embedding is already pooled: use pooling "none".'
    : ' Choose a pooling that one of these outputs supports, or name the output in trawl-model.json (graph.output).';
  throw new TrawlError(
    'MODEL_INVALID',
    `${path} has no output ${wanted.join(' or ')}, which ${use === 'score' ? 'a cross-encoder' : `pooling "${use}"`} needs; ` +
      `it has ${outputs.join(', ')}.${use === 'score' ? '' : hint}`,
  );
}

/**
 * Of another shape, the pooling that a session adds to a graph would take the vectors of other texts without an error. An unknown
 * shape passes.
 *
 * @throws TrawlError MODEL_INVALID.
 */
export function checkTokenOutput(outputs: readonly OutputFacts[], tokenOutput: string, path: string): void {
  const output = outputs.find(({ name }) => name === tokenOutput);
  const shape = output?.isTensor === true ? output.shape! : [];
  if (shape.length === 0 || shape.length === 3) return;
  throw new TrawlError(
    'MODEL_INVALID',
    `${path} has the output ${tokenOutput} of the shape ${shape.join(' × ')}; expected a vector of each token: texts × tokens × ` +
      'dimension. If it is already pooled, use pooling "none", else name another output in trawl-model.json (graph.output).',
  );
}
