import { isAbsolute, join, normalize, sep } from 'node:path';
import { type Static, Type } from 'typebox';
import { Check, Errors } from 'typebox/schema';
import { TrawlError } from '../../base/errors.ts';
import { METRICS } from '../../engine/metric.ts';
import { BEFORE_TRUNCATION, POOLINGS, PRECISIONS, QUERY_TEMPLATES } from '../identity/model-identity.ts';
import { type JsonObject, readJsonFile } from './json-file.ts';
import { parsePairTemplate } from './pair-template.ts';

/** Name of a model's description in its folder. */
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
  /** Files with the graph's weights. */
  externalData: Type.Optional(Type.Array(relativePath)),
});

/** Activation that turns a cross-encoder's output into a score. */
const ACTIVATIONS = ['sigmoid', 'identity'] as const;
export type ScoreActivation = (typeof ACTIVATIONS)[number];

/** `encoder`: texts to vectors. `cross-encoder`: pairs of query and passage to scores. */
const MODEL_KINDS = ['encoder', 'cross-encoder'] as const;
export type ModelKind = (typeof MODEL_KINDS)[number];

/**
 * Where an import has the pooling from: the checkpoint's files, `--pooling`, the family by the model's name, or nothing of these, so that
 * mean is assumed.
 */
const POOLING_ORIGINS = ['checkpoint', 'option', 'name', 'assumed'] as const;
export type PoolingOrigin = (typeof POOLING_ORIGINS)[number];

/** Written by a model import. Scripts that make models may add fields. */
const source = Type.Object({
  kind: Type.Optional(Type.Enum(['folder', 'hub'])),
  /** Id on the hub, or name of the folder. */
  id: Type.Optional(Type.String()),
  revision: Type.Optional(Type.String()),
  /** Files that the import read. */
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
  /** Written by the import of an encoder. */
  poolingFrom: Type.Optional(Type.Enum([...POOLING_ORIGINS])),
  normalize: Type.Boolean(),
  similarity: Type.Enum([...METRICS]),
  prefixes: Type.Object({ query: Type.String(), passage: Type.String() }),
  maxTokens: Type.Object({ query: tokenLimit, passage: tokenLimit }),
  /** What comes before vectors are truncated to fewer values (Matryoshka). Default: nothing. */
  beforeTruncation: Type.Optional(Type.Enum([...BEFORE_TRUNCATION])),
  /** Default: `question-query`. */
  queryTemplate: Type.Optional(Type.Enum([...QUERY_TEMPLATES])),
  /** Default: `encoder`. */
  kind: Type.Optional(Type.Enum([...MODEL_KINDS])),
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
  activation: Type.Optional(Type.Enum([...ACTIVATIONS])),
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

/** All graphs of a description. */
export function graphsOf(description: TrawlModelFile): readonly TrawlModelGraph[] {
  return description.graphs ?? [description.graph];
}

/** Reads and checks the `trawl-model.json` of a folder. Throws MODEL_INVALID with the first wrong field. */
export async function readTrawlModelFile(folder: string): Promise<TrawlModelFile> {
  const path = join(folder, TRAWL_MODEL_FILE);
  const value = await readJsonFile(path);
  checkFormatAndVersion(path, value);
  if (!Check(trawlModelSchema, value)) {
    throw wrongField(path, value);
  }
  const graphs = [value.graph, ...graphsOf(value)];
  for (const inner of [
    ...graphs.flatMap((graph) => [graph.path, ...(graph.externalData ?? [])]),
    value.tokenizer.path,
    ...value.files.map((file) => file.path),
  ]) {
    checkInside(path, inner);
  }
  checkGraphs(path, value);
  checkPairTemplate(path, value);
  return value;
}

/** Checked before the fields, because the fields of an unknown version may mean something else. */
function checkFormatAndVersion(path: string, value: JsonObject): void {
  if (value.format !== 'trawl-model') {
    throw new TrawlError('MODEL_INVALID', `${path}: format must be "trawl-model". This is not a model description.`);
  }
  if (value.version !== TRAWL_MODEL_VERSION) {
    throw new TrawlError(
      'MODEL_INVALID',
      `${path} has version ${JSON.stringify(value.version)}, but this version of Trawl reads version ${TRAWL_MODEL_VERSION}. ` +
        'Use the version of Trawl that wrote it, or import the model again.',
    );
  }
}

function checkGraphs(path: string, value: TrawlModelFile): void {
  const precisions = graphsOf(value).map((graph) => graph.precision);
  const duplicate = precisions.find((precision, i) => precisions.indexOf(precision) !== i);
  const fault =
    duplicate !== undefined
      ? `graphs has two graphs of precision ${duplicate}`
      : precisions.includes(value.graph.precision)
        ? null
        : `graphs lacks the default graph's precision ${value.graph.precision}`;
  if (fault !== null) throw new TrawlError('MODEL_INVALID', `${path}: ${fault}. Correct it or import the model again.`);
}

function checkPairTemplate(path: string, { kind, pairTemplate }: TrawlModelFile): void {
  if (pairTemplate === undefined) return;
  const fault =
    kind !== 'cross-encoder'
      ? 'pairTemplate is for the kind cross-encoder only'
      : parsePairTemplate(pairTemplate) === null
        ? 'pairTemplate must have {query} once, and {passage} once after it'
        : null;
  if (fault !== null) throw new TrawlError('MODEL_INVALID', `${path}: ${fault}. Correct it or import the model again.`);
}

function checkInside(path: string, inner: string): void {
  if (isAbsolute(inner) || normalize(inner).split(sep)[0] === '..') {
    throw new TrawlError(
      'MODEL_INVALID',
      `${path}: the path "${inner}" is outside the model folder. Paths must be relative to the folder and inside it.`,
    );
  }
}

function wrongField(path: string, value: JsonObject): TrawlError {
  const [, [first]] = Errors(trawlModelSchema, value);
  const field = (first?.instancePath ?? '').slice(1).replaceAll('/', '.') || 'the file';
  const allowed = first?.keyword === 'enum' ? `: ${first.params.allowedValues.join(', ')}` : '';
  return new TrawlError(
    'MODEL_INVALID',
    `${path}: ${field} ${first?.message ?? 'is not valid'}${allowed}. Correct it or import the model again.`,
    { details: { field } },
  );
}
