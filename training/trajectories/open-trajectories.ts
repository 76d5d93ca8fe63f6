import { statSync } from 'node:fs';
import type { Question } from '../../evaluation/read-questions.ts';
import { asTrawlError } from '../../src/base/errors.ts';
import { formatCount } from '../../src/base/format.ts';
import { sha256OfFile } from '../../src/base/system/file-checksum.ts';
import { readRecords } from '../records/read-records.ts';
import { unreadable } from './read-items.ts';
import { readTrajectories } from './read-trajectories.ts';
import { openRecordedTrajectories, type RecordedCounts, type RecordedGeneration } from './recorded-trajectories.ts';
import type { Trajectory } from './trajectory.ts';

/** The trajectories of a command's files. */
export interface OpenTrajectories {
  /** Changes with the content of the files. */
  readonly sha256: string;
  /** Of records: the index generations that answered. */
  readonly generations?: readonly RecordedGeneration[];
  /** `onShare` is called with the share of the input that was read. */
  read(skip: number, onShare: (share: number) => void): AsyncGenerator<Trajectory, void>;
}

/** @throws TrawlError CORPUS_NOT_FOUND, CANCELLED. */
export async function openTrajectoryFile(file: string, signal: AbortSignal): Promise<OpenTrajectories> {
  const sha256 = await sha256OfFile(file, signal).catch((error: unknown) => {
    throw asTrawlError(error).code === 'CANCELLED' ? error : unreadable(file, error);
  });
  const { size } = statSync(file);
  return {
    sha256,
    read(skip, onShare) {
      let read = 0;
      const onBytes = (bytes: number): void => {
        read += bytes;
        onShare(read / size);
      };
      return readTrajectories(file, { skip, signal, onBytes });
    },
  };
}

/**
 * Trajectories of recorded calls, with the golden answers of `questions`, if there are any.
 *
 * @throws TrawlError CORPUS_NOT_FOUND, CORPUS_BAD_LINE, CANCELLED.
 */
export async function openRecords(
  files: readonly string[],
  questions: readonly Question[] | undefined,
  { signal, note }: { readonly signal: AbortSignal; readonly note: (text: string) => void },
): Promise<OpenTrajectories> {
  const recorded = await openRecordedTrajectories(() => readRecords(files, { signal }), { questions });
  for (const line of leftOut(recorded.counts)) note(line);
  const { queries, withoutTrajectory, failed } = recorded.counts;
  const used = queries - withoutTrajectory - failed;
  return {
    sha256: recorded.sha256,
    generations: recorded.generations,
    async *read(skip, onShare) {
      let done = 0;
      for await (const trajectory of recorded.read(skip)) {
        done += trajectory.searches.length;
        onShare(Math.min(1, done / used));
        yield trajectory;
      }
    },
  };
}

function leftOut({ queries, withoutTrajectory, failed, guessed }: RecordedCounts): string[] {
  return [
    ...(withoutTrajectory > 0
      ? [
          `${formatCount(withoutTrajectory)} of ${formatCount(queries)} recorded queries have no trajectory and are left out; docs/recording.md says how clients name it.`,
        ]
      : []),
    ...(failed > 0 ? [`${formatCount(failed)} failed queries are left out.`] : []),
    ...(guessed > 0 ? [`${formatCount(guessed)} queries are in guessed trajectories.`] : []),
  ];
}
