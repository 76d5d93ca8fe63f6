import { isAbsolute, join, normalize, sep } from 'node:path';
import { type Static, Type } from 'typebox';
import { Check, Errors } from 'typebox/schema';
import { TrawlError } from '../errors.ts';
import { POOLINGS, PRECISIONS } from '../manifest/model-identity.ts';
import { METRICS } from '../metric.ts';
import { type JsonObject, readJsonFile } from './json-file.ts';

/** The description that makes a folder a Trawl model. */
export const TRAWL_MODEL_FILE = 'trawl-model.json';

/** Version history: 1 (0.1.0) the first. */
export const TRAWL_MODEL_VERSION = 1;

const tokenLimit = Type.Integer({ minimum: 3 });
const relativePath = Type.String({ minLength: 1 });
const sha256 = Type.String({ pattern: '^[0-9a-f]{64}$' });

const recordedFile = Type.Object({ path: relativePath, bytes: Type.Integer({ minimum: 0 }), sha256 });

const graph = Type.Object({
  path: relativePath,
  precision: Type.Enum([...PRECISIONS]),
  /** Name of the graph's output; chosen by the pooling where absent. */
  output: Type.Optional(Type.String({ minLength: 1 })),
  /** Files beside the graph that hold its weights. */
  externalData: Type.Optional(Type.Array(relativePath)),
});

/** What makes a score of a cross-encoder's value. */
export const ACTIVATIONS = ['sigmoid', 'identity'] as const;
export type ScoreActivation = (typeof ACTIVATIONS)[number];

/** What a model does: texts to vectors, or pairs of query and passage to scores. */
export const MODEL_KINDS = ['encoder', 'cross-encoder'] as const;
export type ModelKind = (typeof MODEL_KINDS)[number];

/** What an import records; a script that made a model may say other things here. */
const source = Type.Object({
  kind: Type.Optional(Type.Enum(['folder', 'hub'])),
  /** The hub's id, or the folder's name. */
  id: Type.Optional(Type.String()),
  revision: Type.Optional(Type.String()),
  /** The source's own files, as they were read. */
  files: Type.Optional(Type.Array(recordedFile)),
});

/** `trawl-model.json` v1. Further fields are kept for people (source, notes) and not looked at. */
const trawlModelSchema = Type.Object({
  format: Type.Literal('trawl-model'),
  version: Type.Literal(TRAWL_MODEL_VERSION),
  name: Type.String({ minLength: 1 }),
  architecture: Type.String({ minLength: 1 }),
  dimension: Type.Integer({ minimum: 1 }),
  pooling: Type.Enum([...POOLINGS]),
  normalize: Type.Boolean(),
  similarity: Type.Enum([...METRICS]),
  prefixes: Type.Object({ query: Type.String(), passage: Type.String() }),
  maxTokens: Type.Object({ query: tokenLimit, passage: tokenLimit }),
  /** `encoder` where absent. */
  kind: Type.Optional(Type.Enum([...MODEL_KINDS])),
  /** The graph that is used unless another precision is asked for. */
  graph,
  /** Every graph, the default one included; where absent there is that one alone. */
  graphs: Type.Optional(Type.Array(graph)),
  tokenizer: Type.Object({ path: relativePath }),
  batchInvariant: Type.Boolean(),
  license: Type.Optional(Type.String()),
  /** Most tokens that the model has positions for. */
  maxPositions: Type.Optional(tokenLimit),
  /** Of a cross-encoder: values per pair, and what makes scores of them. */
  labels: Type.Optional(Type.Integer({ minimum: 1 })),
  activation: Type.Optional(Type.Enum([...ACTIVATIONS])),
  source: Type.Optional(source),
  /** Over the source's weights: equal for all precisions of one checkpoint. */
  weightsSha256: Type.Optional(sha256),
  /** Every file of the model besides this one; paths relative to the folder. */
  files: Type.Array(recordedFile),
});

export type TrawlModelFile = Static<typeof trawlModelSchema>;
export type TrawlModelGraph = Static<typeof graph>;

/** Every graph of a description. */
export function graphsOf(description: TrawlModelFile): readonly TrawlModelGraph[] {
  return description.graphs ?? [description.graph];
}

/** Reads and checks `trawl-model.json` of a folder; MODEL_INVALID names the first wrong field and what it must be. */
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
  return value;
}

/** Version first: the other fields of a version that this program does not know mean nothing to it. */
function checkFormatAndVersion(path: string, value: JsonObject): void {
  if (value.format !== 'trawl-model') {
    throw new TrawlError('MODEL_INVALID', `${path}: format must be "trawl-model". This file describes something else.`);
  }
  if (value.version !== TRAWL_MODEL_VERSION) {
    throw new TrawlError(
      'MODEL_INVALID',
      `${path} has version ${JSON.stringify(value.version)}; this program reads version ${TRAWL_MODEL_VERSION}. ` +
        'Use the program version that wrote it, or make the model again with this one.',
    );
  }
}

function checkGraphs(path: string, value: TrawlModelFile): void {
  const precisions = graphsOf(value).map((graph) => graph.precision);
  const twice = precisions.find((precision, i) => precisions.indexOf(precision) !== i);
  const fault =
    twice !== undefined
      ? `graphs has two of precision ${twice}`
      : precisions.includes(value.graph.precision)
        ? null
        : `graphs has none of precision ${value.graph.precision}, which graph has`;
  if (fault !== null) throw new TrawlError('MODEL_INVALID', `${path}: ${fault}. Correct it or make the model again.`);
}

function checkInside(path: string, inner: string): void {
  if (isAbsolute(inner) || normalize(inner).split(sep)[0] === '..') {
    throw new TrawlError(
      'MODEL_INVALID',
      `${path}: the path "${inner}" leaves the model folder. Paths are relative to the folder and stay inside.`,
    );
  }
}

function wrongField(path: string, value: JsonObject): TrawlError {
  const [, [first]] = Errors(trawlModelSchema, value);
  const field = (first?.instancePath ?? '').slice(1).replaceAll('/', '.') || 'the file';
  const allowed = first?.keyword === 'enum' ? `: ${first.params.allowedValues.join(', ')}` : '';
  return new TrawlError(
    'MODEL_INVALID',
    `${path}: ${field} ${first?.message ?? 'is not as expected'}${allowed}. Correct it or make the model again.`,
    { details: { field } },
  );
}
