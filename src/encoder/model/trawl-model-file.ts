import { join } from 'node:path';
import { type Static, Type } from 'typebox';
import { METRICS } from '../../engine/metric.ts';
import { BEFORE_TRUNCATION, POOLINGS, PRECISIONS, QUERY_TEMPLATES } from '../identity/model-identity.ts';
import { invalidModel, leadsOutside, matching, readJsonFile } from './json-file.ts';

export const TRAWL_MODEL_FILE = 'trawl-model.json';

/** Format version. 1 (0.1.0): the first. */
export const TRAWL_MODEL_VERSION = 1;

const tokenLimit = Type.Integer({ minimum: 3 });
const relativePath = Type.String({ minLength: 1 });
const sha256 = Type.String({ pattern: '^[0-9a-f]{64}$' });

const recordedFile = Type.Object({ path: relativePath, bytes: Type.Integer({ minimum: 0 }), sha256 });

const graph = Type.Object({
  path: relativePath,
  precision: Type.Enum([...PRECISIONS]),
  /** Name of the graph's output. Default: the pooling decides. */
  output: Type.Optional(Type.String({ minLength: 1 })),
  externalData: Type.Optional(Type.Array(relativePath)),
});

/** Written by a model import. Scripts that make models may add fields. */
const source = Type.Object({
  kind: Type.Optional(Type.Enum(['folder', 'hub'])),
  /** Id on the hub, or name of the folder. */
  id: Type.Optional(Type.String()),
  revision: Type.Optional(Type.String()),
  files: Type.Optional(Type.Array(recordedFile)),
});

/** `trawl-model.json` version 1. Unknown fields are ignored. */
const trawlModelSchema = Type.Object({
  format: Type.Literal('trawl-model'),
  version: Type.Literal(TRAWL_MODEL_VERSION),
  name: Type.String({ minLength: 1 }),
  architecture: Type.String({ minLength: 1 }),
  dimension: Type.Integer({ minimum: 1 }),
  pooling: Type.Enum([...POOLINGS]),
  /** Where an import has the pooling from: the checkpoint's files, `--pooling`, the family by the model's name, or none of these. */
  poolingFrom: Type.Optional(Type.Enum(['checkpoint', 'option', 'name', 'assumed'])),
  normalize: Type.Boolean(),
  similarity: Type.Enum([...METRICS]),
  prefixes: Type.Object({ query: Type.String(), passage: Type.String() }),
  maxTokens: Type.Object({ query: tokenLimit, passage: tokenLimit }),
  /** What comes before vectors are truncated to fewer values (Matryoshka). Default: nothing. */
  beforeTruncation: Type.Optional(Type.Enum([...BEFORE_TRUNCATION])),
  /** Default: `question-query`. */
  queryTemplate: Type.Optional(Type.Enum([...QUERY_TEMPLATES])),
  /** `encoder` (default): texts to vectors. `cross-encoder`: pairs of query and passage to scores. */
  kind: Type.Optional(Type.Enum(['encoder', 'cross-encoder'])),
  /** The default graph. */
  graph,
  /** All graphs, the default graph included. Default: only the default graph. */
  graphs: Type.Optional(Type.Array(graph)),
  tokenizer: Type.Object({ path: relativePath }),
  batchInvariant: Type.Boolean(),
  license: Type.Optional(Type.String()),
  /** Maximum number of tokens: the model's positions. */
  maxPositions: Type.Optional(tokenLimit),
  /** Cross-encoders only: values per pair, and the activation that turns them into scores. */
  labels: Type.Optional(Type.Integer({ minimum: 1 })),
  activation: Type.Optional(Type.Enum(['sigmoid', 'identity'])),
  /** Rerankers that read a chat: the whole text of a pair, with the places {query} and {passage}. */
  pairTemplate: Type.Optional(Type.String({ minLength: 1 })),
  source: Type.Optional(source),
  /** Checksum of the checkpoint's weights, equal for all precisions made from it. */
  weightsSha256: Type.Optional(sha256),
  /** All files of the model except this one; paths relative to the folder. */
  files: Type.Array(recordedFile),
});

export type TrawlModelFile = Static<typeof trawlModelSchema>;
export type TrawlModelGraph = Static<typeof graph>;
export type ModelKind = NonNullable<TrawlModelFile['kind']>;
export type PoolingOrigin = NonNullable<TrawlModelFile['poolingFrom']>;
export type ScoreActivation = NonNullable<TrawlModelFile['activation']>;

export function graphsOf(description: TrawlModelFile): readonly TrawlModelGraph[] {
  return description.graphs ?? [description.graph];
}

/**
 * The text around query and passage for a reranker that reads a chat, cut at its places. Each place must end a word for the
 * tokenizer, as a space before it and a special token or a line break after it do: the parts are tokenised apart.
 */
export interface PairTemplate {
  readonly before: string;
  readonly between: string;
  readonly after: string;
}

/** Cuts `…{query}…{passage}…`. Undefined if a place is missing, is there twice, or the order is another. */
export function parsePairTemplate(text: string): PairTemplate | undefined {
  const parts = text.split(/\{(query|passage)\}/);
  if (parts.length !== 5 || parts[1] !== 'query' || parts[3] !== 'passage') return undefined;
  return { before: parts[0]!, between: parts[2]!, after: parts[4]! };
}

/** Reads and checks the `trawl-model.json` of a folder. Throws MODEL_INVALID with the first wrong field. */
export async function readTrawlModelFile(folder: string): Promise<TrawlModelFile> {
  const path = join(folder, TRAWL_MODEL_FILE);
  const file = await readJsonFile(path);
  // Checked before the fields, because the fields of an unknown version may mean something else.
  if (file.format !== 'trawl-model') {
    throw invalidModel(`${path}: format must be "trawl-model". This is not a model description.`);
  }
  if (file.version !== TRAWL_MODEL_VERSION) {
    throw invalidModel(
      `${path} has version ${JSON.stringify(file.version)}, but this version of Trawl reads version ${TRAWL_MODEL_VERSION}. ` +
        'Use the version of Trawl that wrote it, or import the model again.',
    );
  }
  const correct = 'Correct it or import the model again.';
  const value = matching(trawlModelSchema, file, (fault) => `${path}: ${fault}. ${correct}`);
  const paths = [
    ...[value.graph, ...graphsOf(value)].flatMap((graph) => [graph.path, ...(graph.externalData ?? [])]),
    value.tokenizer.path,
    ...value.files.map((file) => file.path),
  ];
  const outside = paths.find(leadsOutside);
  if (outside !== undefined) {
    throw invalidModel(
      `${path}: the path "${outside}" is outside the model folder. Paths must be relative to the folder and inside it.`,
    );
  }
  const fault = graphsFault(value) ?? pairTemplateFault(value);
  if (fault !== undefined) throw invalidModel(`${path}: ${fault}. ${correct}`);
  return value;
}

function graphsFault(value: TrawlModelFile): string | undefined {
  const precisions = graphsOf(value).map((graph) => graph.precision);
  const duplicate = precisions.find((precision, i) => precisions.indexOf(precision) !== i);
  if (duplicate !== undefined) return `graphs has two graphs of precision ${duplicate}`;
  const { precision } = value.graph;
  return precisions.includes(precision) ? undefined : `graphs lacks the default graph's precision ${precision}`;
}

function pairTemplateFault({ kind, pairTemplate }: TrawlModelFile): string | undefined {
  if (pairTemplate === undefined) return undefined;
  if (kind !== 'cross-encoder') return 'pairTemplate is for the kind cross-encoder only';
  return parsePairTemplate(pairTemplate) === undefined
    ? 'pairTemplate must have {query} once, and {passage} once after it'
    : undefined;
}
