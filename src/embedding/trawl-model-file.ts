import { isAbsolute, join, normalize, sep } from 'node:path';
import { type Static, Type } from 'typebox';
import { Value } from 'typebox/value';
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
  graph: Type.Object({
    path: relativePath,
    precision: Type.Enum([...PRECISIONS]),
    /** Name of the graph's output; chosen by the pooling where absent. */
    output: Type.Optional(Type.String({ minLength: 1 })),
  }),
  tokenizer: Type.Object({ path: relativePath }),
  batchInvariant: Type.Boolean(),
  license: Type.Optional(Type.String()),
  /** Every file of the model besides this one; paths relative to the folder. */
  files: Type.Array(Type.Object({ path: relativePath, bytes: Type.Integer({ minimum: 0 }), sha256 })),
});

export type TrawlModelFile = Static<typeof trawlModelSchema>;

/** Reads and checks `trawl-model.json` of a folder; MODEL_INVALID names the first wrong field and what it must be. */
export async function readTrawlModelFile(folder: string): Promise<TrawlModelFile> {
  const path = join(folder, TRAWL_MODEL_FILE);
  const value = await readJsonFile(path);
  checkFormatAndVersion(path, value);
  if (!Value.Check(trawlModelSchema, value)) {
    throw wrongField(path, value);
  }
  for (const inner of [value.graph.path, value.tokenizer.path, ...value.files.map((file) => file.path)]) {
    checkInside(path, inner);
  }
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

function checkInside(path: string, inner: string): void {
  if (isAbsolute(inner) || normalize(inner).split(sep)[0] === '..') {
    throw new TrawlError(
      'MODEL_INVALID',
      `${path}: the path "${inner}" leaves the model folder. Paths are relative to the folder and stay inside.`,
    );
  }
}

function wrongField(path: string, value: JsonObject): TrawlError {
  const [first] = Value.Errors(trawlModelSchema, value);
  const field = (first?.instancePath ?? '').slice(1).replaceAll('/', '.') || 'the file';
  const allowed = first?.keyword === 'enum' ? `: ${first.params.allowedValues.join(', ')}` : '';
  return new TrawlError(
    'MODEL_INVALID',
    `${path}: ${field} ${first?.message ?? 'is not as expected'}${allowed}. Correct it or make the model again.`,
    { details: { field } },
  );
}
