import { rm } from 'node:fs/promises';
import { join } from 'node:path';
import Type from 'typebox';
import { TrawlError } from '../../src/base/errors.ts';
import { syncFolder, writeJsonDurably } from '../../src/base/system/durable-file.ts';
import { PRECISIONS } from '../../src/encoder/identity/model-identity.ts';
import { readRecord } from '../../src/index/manifest/build-records.ts';
import { Count, Generation, Sha256 } from '../../src/index/manifest/schemas.ts';

const nullable = <Schema extends Type.TSchema>(schema: Schema) => Type.Union([schema, Type.Null()]);

/** Means of the metrics of `evaluateRun` by their names, such as `recall@10`. */
const Means = Type.Record(Type.String(), Type.Number());

/** What the held-out questions and the comparison of answers gave. */
export const Measures = Type.Object({
  /** The generation of the index that was compared with. */
  against: Generation,
  /** The options that were measured with; a run with others measures again. */
  settings: Type.Record(Type.String(), Type.Unknown()),
  judged: Count,
  recallK: Type.Integer({ minimum: 1 }),
  before: Means,
  now: Means,
  /** How the answers differ from the previous index's answers. */
  answers: Type.Object({
    /** Whether the queries were held-out questions or recorded queries. */
    of: Type.Enum(['questions', 'records']),
    /** Passages of an answer that count. */
    k: Type.Integer({ minimum: 1 }),
    queries: Count,
    /**
     * Queries whose first k passages are not the same passages; their order does not count. Also those that fail now by themselves, and
     * those whose passages are gone.
     */
    changed: Count,
    /** Mean share of the first k passages that are others. Null without queries. */
    replaced: nullable(Type.Number()),
    /** Mean rank-biased overlap. Null without queries. */
    rbo: nullable(Type.Number()),
  }),
});
export type Measures = Type.Static<typeof Measures>;

/** What a trial of the model on a part of the served index gave, before the whole corpus is embedded. */
export const Trial = Type.Object({
  /** The generation of that index. */
  against: Generation,
  /** The options of the trial; a run with others tries again. */
  settings: Type.Record(Type.String(), Type.Unknown()),
  judged: Count,
  k: Type.Integer({ minimum: 1 }),
  /** Recall in the whole index, with the interval of the questions (95 %), if there is one. Null without random passages. */
  estimate: nullable(
    Type.Object({ value: Type.Number(), low: nullable(Type.Number()), high: nullable(Type.Number()) }),
  ),
  /** Recall in the pool: that in the whole index is not higher. */
  bound: Type.Number(),
  present: Type.Number(),
  /** Estimate minus recall for the present encoder, tried as if it were new. Null if that could not be estimated. */
  error: nullable(Type.Number()),
  /** Passages that were embedded, and passages in the index. */
  pool: Count,
  whole: Count,
  /** What embedding the whole index would take at that speed, in milliseconds. */
  wholeMs: Type.Number(),
});
export type Trial = Type.Static<typeof Trial>;

const InputFile = Type.Object({ path: Type.String(), bytes: Count, sha256: Sha256 });
export type InputFile = Type.Static<typeof InputFile>;

/** What must not change while an iteration is unfinished. */
const Inputs = Type.Object({
  /** Absolute folder. */
  checkpoint: Type.String(),
  /** With paths relative to the checkpoint. */
  checkpointFiles: Type.Array(InputFile),
  /** With absolute paths. */
  corpus: Type.Array(InputFile),
  settings: Type.Record(Type.String(), Type.Unknown()),
});

/** An iteration that was published, or the index that the loop began with (number 0). */
const PublishedIteration = Type.Object({
  number: Count,
  /** Folder of the index: relative to the iterations folder, or absolute for number 0. */
  index: Type.String({ minLength: 1 }),
  /** When it was published. A change in place gives the index another: `IterationsFolder.current` has the present one. */
  generation: Generation,
  /** Name of the encoder. Null for an index without vectors. */
  model: nullable(Type.String()),
  inputs: nullable(Inputs),
  /** The iteration that was served before. Null for number 0. */
  base: nullable(Count),
  measures: nullable(Measures),
  /** Null until every server has answered with it. */
  publishedAt: nullable(Type.String()),
  /** False once its files are removed. */
  kept: Type.Boolean(),
});
export type PublishedIteration = Type.Static<typeof PublishedIteration>;

const HISTORY_FILE = 'iterations.json';

/** `iterations.json`: the iterations that were published, by number. */
const History = Type.Object({
  format: Type.Literal('trawl-iterations'),
  version: Type.Literal(1),
  next: Type.Integer({ minimum: 1 }),
  iterations: Type.Array(PublishedIteration),
  /** The iteration that was served before somebody went back. Absent once another is published. */
  left: Type.Optional(Count),
});
export type History = Type.Static<typeof History>;

const JOURNAL_FILE = 'iteration.json';

/** `iteration.json`: the unfinished iteration, with what each finished step found. */
const Journal = Type.Object({
  format: Type.Literal('trawl-iteration'),
  version: Type.Literal(1),
  number: Type.Integer({ minimum: 1 }),
  /** The iteration that was served when this one began. */
  base: Count,
  inputs: Inputs,
  model: nullable(
    Type.Object({
      name: Type.String(),
      precision: Type.Enum([...PRECISIONS]),
      /** Settings in place of the model's own, as `ModelOverrides`. */
      overrides: Type.Record(Type.String(), Type.Unknown()),
      /** Settings in which the encoder differs from the previous index's encoder, in words. */
      changes: Type.Array(Type.String()),
    }),
  ),
  /** Absent if none was asked for. */
  trial: Type.Optional(Trial),
  index: nullable(Type.Object({ generation: Generation, sameCorpus: Type.Boolean() })),
  measures: nullable(Measures),
});
export type Journal = Type.Static<typeof Journal>;

/** Undefined if the folder has no iterations yet. @throws TrawlError CONFIG_INVALID if the file cannot be read. */
export function readHistory(root: string): History | undefined {
  return readFile(History, join(root, HISTORY_FILE));
}

export function writeHistory(root: string, history: History): Promise<void> {
  return writeJsonDurably(join(root, HISTORY_FILE), history);
}

/** Undefined if no iteration is unfinished. @throws TrawlError CONFIG_INVALID if the file cannot be read. */
export function readJournal(root: string): Journal | undefined {
  return readFile(Journal, join(root, JOURNAL_FILE));
}

export function writeJournal(root: string, journal: Journal): Promise<void> {
  return writeJsonDurably(join(root, JOURNAL_FILE), journal);
}

export async function removeJournal(root: string): Promise<void> {
  await rm(join(root, JOURNAL_FILE), { force: true });
  await syncFolder(root);
}

function readFile<Schema extends Type.TSchema>(schema: Schema, path: string): Type.Static<Schema> | undefined {
  const record = readRecord(schema, path);
  if (record !== null) return record;
  throw new TrawlError(
    'CONFIG_INVALID',
    `${path} cannot be read: it is not what this version of trawl iterate writes. Restore it from a copy, or use another --root.`,
  );
}
