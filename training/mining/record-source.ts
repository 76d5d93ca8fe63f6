import { createHash } from 'node:crypto';
import { TrawlError } from '../../src/base/errors.ts';
import { composedParts, withoutQuestion } from '../../src/server/recording/composed-query.ts';
import { type RecordLine, readAllRecordFiles } from '../records/read-records.ts';
import { closeAll, openRecordSets } from '../records/record-files.ts';
import type { RecordedQuery } from '../records/recorded-query.ts';
import type { MiningQuery, SkipReason } from './mined-query.ts';

interface RecordLimits {
  /** Only queries of this split; undefined: of all. */
  readonly split?: string;
  /** Only records of this index generation are allowed; undefined: any. Another one throws. */
  readonly generation?: string;
}

export type RecordSource = Awaited<ReturnType<typeof openRecordSource>>;

/**
 * Opens files of `--record` with their rotated files once. A server may append to them and rotate them meanwhile.
 *
 * @throws TrawlError CORPUS_NOT_FOUND.
 */
export async function openRecordSource(paths: readonly string[]) {
  const files = (await openRecordSets(paths)).flat();
  const hashes = new Map(files.map(({ path }) => [path, createHash('sha256')]));
  let mode = 0o666;
  for (const { handle } of files) mode &= (await handle.stat()).mode;
  return {
    paths: files.map(({ path }) => path),
    /**
     * Permissions for files with queries of these records: no wider than the permissions of any of these files. The run itself must read
     * and write what it makes.
     */
    mode: mode | 0o600,
    /**
     * The queries of all files in their order, without positives: those come from judged questions or qrels. A failed query and one of
     * another split give the reason why they are left out. They can be read once; the files are closed at the end.
     *
     * @throws TrawlError CORPUS_BAD_LINE for a damaged line or another generation.
     */
    async *queries({ split, generation }: RecordLimits): AsyncGenerator<MiningQuery | SkipReason, void> {
      for await (const line of readAllRecordFiles(files, {})) {
        if (!('query' in line)) continue;
        const { file, text, query } = line;
        hashes.get(file)!.update(`${text}\n`);
        if (split !== undefined && query.split !== split) yield 'other_split';
        else if (query.error !== undefined) yield 'failed';
        else if (generation !== undefined && query.generation !== generation) throw otherGeneration(line, generation);
        else yield miningQuery(query);
      }
    },
    /** SHA-256 of the records that were read of each file. Call it once, after `queries`. */
    checksums: () => Array.from(hashes, ([path, hash]) => ({ path, sha256: hash.digest('hex') })),
    close: () => closeAll(files),
  };
}

/** A text that the client composed of question and sub-query is cut after the question, or at the first separator. */
function miningQuery({ questionId, dataset, turn, history, question, query }: RecordedQuery): MiningQuery {
  const parts =
    question === undefined
      ? (composedParts(query) ?? { question: query })
      : { question, query: withoutQuestion(query, question) };
  return { id: questionId ?? '', ...parts, history, round: turn, dataset, positiveIds: [], answers: [] };
}

function otherGeneration({ file, line, query }: RecordLine, generation: string): TrawlError {
  return new TrawlError(
    'CORPUS_BAD_LINE',
    `${file}:${line}: the query was asked in index generation ${query.generation || '(none)'}, and this index is ${generation}. ` +
      'Mine in the index that the agent used, or allow any with --any-generation.',
    { details: { file, line } },
  );
}
