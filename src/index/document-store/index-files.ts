import { existsSync, readdirSync } from 'node:fs';
import { rm } from 'node:fs/promises';
import { join } from 'node:path';
import { type Static, type TSchema, Type } from 'typebox';
import { Check } from 'typebox/schema';
import { TrawlError } from '../../base/errors.ts';
import { readJsonSync } from '../../base/files/read-json.ts';
import { writeJsonDurably } from '../../base/system/durable-file.ts';
import { COLUMN_TYPES } from '../../engine/filter/column.ts';
import { ANALYSERS } from '../../engine/lexical/lexical-settings.ts';

/** Names of Elasticsearch's similarities of vectors, the default first. */
export const VECTOR_SIMILARITIES = ['cosine', 'dot_product', 'l2_norm', 'max_inner_product'] as const;

/** What an index was created with over HTTP. Stored as JSON beside its documents. */
export const IndexDefinition = Type.Object({
  format: Type.Literal('trawl-writable-index'),
  version: Type.Literal(1),
  name: Type.String(),
  uuid: Type.String(),
  /** Milliseconds since 1970. */
  createdAt: Type.Number(),
  /** The members of a document whose words can be searched, as paths with dots. */
  fields: Type.Array(Type.String({ minLength: 1 })),
  analyser: Type.Enum([...ANALYSERS]),
  /** The parameters of the similarity. Absent: Elasticsearch's default. */
  bm25: Type.Optional(Type.Object({ k1: Type.Number(), b: Type.Number() })),
  /** The members of a document that filters can name. */
  columns: Type.Array(
    Type.Object({
      name: Type.String(),
      type: Type.Enum([...COLUMN_TYPES]),
      /** Whether its numbers are whole, as of Elasticsearch's `long`. */
      integer: Type.Boolean(),
    }),
  ),
  /** The member of a document that is its vector; absent: documents have none. */
  vector: Type.Optional(
    Type.Object({
      field: Type.String({ minLength: 1 }),
      similarity: Type.Enum([...VECTOR_SIMILARITIES]),
      /** Values of a vector; absent: not known before the first one. */
      dimension: Type.Optional(Type.Integer({ minimum: 1 })),
    }),
  ),
  /** Whether a document with members that are not mapped is refused. */
  strict: Type.Boolean(),
  /** The mapping as requests for it are answered. */
  properties: Type.Record(Type.String(), Type.Unknown()),
  settings: Type.Object({
    shards: Type.Integer(),
    replicas: Type.Integer(),
    /** Time between a write and its refresh in milliseconds; -1: only requests refresh. */
    refreshMs: Type.Integer(),
    /** The same as the client wrote it; absent if it did not. */
    refreshInterval: Type.Optional(Type.String()),
  }),
});
export type IndexDefinition = Static<typeof IndexDefinition>;

const DEFINITION_FILE = 'definition.json';
const CURRENT_FILE = 'current.json';

/** Which of the folders is served, and the number of the last change that it has. */
const Current = Type.Object({ folder: Type.String({ pattern: '^index-\\d+$' }), seqNo: Type.Integer() });
export type Current = Static<typeof Current>;

/** The files of one writable index, in a folder of its own. */
export class IndexFiles {
  readonly folder: string;

  constructor(folder: string) {
    this.folder = folder;
  }

  /** Whether the folder belongs to a writable index. */
  get exists(): boolean {
    return existsSync(join(this.folder, DEFINITION_FILE));
  }

  get store(): string {
    return join(this.folder, 'documents.sqlite');
  }

  /**
   * The folders of a new refresh: its index, and one that exists only while it runs. Their names are new, because a process of an earlier
   * server may still write to older ones.
   */
  next({ folder }: Pick<Current, 'folder'>) {
    const number = Math.max(Number(folder.slice('index-'.length)) + 1, Date.now());
    const name = `index-${number}`;
    return { folder: name, out: join(this.folder, name), scratch: join(this.folder, `refresh-${number}`) };
  }

  /** @throws TrawlError INDEX_MANIFEST_INVALID. */
  definition(): IndexDefinition {
    return readJson(join(this.folder, DEFINITION_FILE), IndexDefinition);
  }

  saveDefinition(definition: IndexDefinition): Promise<void> {
    return writeJsonDurably(join(this.folder, DEFINITION_FILE), definition);
  }

  /** @throws TrawlError INDEX_MANIFEST_INVALID. */
  current(): Current {
    return readJson(join(this.folder, CURRENT_FILE), Current);
  }

  saveCurrent(current: Current): Promise<void> {
    return writeJsonDurably(join(this.folder, CURRENT_FILE), current);
  }

  /** Removes what interrupted or earlier refreshes have left. */
  async removeOthers({ folder }: Pick<Current, 'folder'>): Promise<void> {
    const left = readdirSync(this.folder).filter((name) => /^(?:index|refresh)-\d+(?:\.\w+)?$/.test(name));
    for (const name of left) {
      if (name !== folder) await rm(join(this.folder, name), { recursive: true, force: true });
    }
  }
}

function readJson<Schema extends TSchema>(path: string, schema: Schema): Static<Schema> {
  const invalid = (why: string, cause?: unknown): TrawlError =>
    new TrawlError(
      'INDEX_MANIFEST_INVALID',
      `${path}: ${why}. Restore the file, or remove the folder and fill the index again.`,
      { cause },
    );
  const value = readJsonSync(path, 'the file', invalid);
  if (!Check(schema, value)) throw invalid('a field is missing or has a wrong value');
  return value;
}
