import { existsSync, readdirSync, readFileSync } from 'node:fs';
import { rm } from 'node:fs/promises';
import { join } from 'node:path';
import type { TSchema } from 'typebox';
import { type Static, Type } from 'typebox';
import { Check } from 'typebox/schema';
import { TrawlError } from '../../base/errors.ts';
import { writeJsonDurably } from '../../base/system/durable-file.ts';
import { IndexDefinition } from './index-definition.ts';

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
   * The folders of a new refresh: its index, and one that exists only while it runs. Their names were never used before: a process of
   * an earlier server may not have ended yet.
   */
  next({ folder }: Pick<Current, 'folder'>): {
    readonly folder: string;
    readonly out: string;
    readonly scratch: string;
  } {
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
  let value: unknown;
  try {
    value = JSON.parse(readFileSync(path, 'utf8'));
  } catch (cause) {
    throw invalid(path, (cause as Error).message, cause);
  }
  if (!Check(schema, value)) throw invalid(path, 'a field is missing or has a wrong value');
  return value;
}

function invalid(path: string, why: string, cause?: unknown): TrawlError {
  return new TrawlError(
    'INDEX_MANIFEST_INVALID',
    `${path} cannot be read: ${why}. Restore the file, or remove the folder and fill the index again.`,
    { cause },
  );
}
