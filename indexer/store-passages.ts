import type { Corpus } from '../corpus/open-corpus.ts';
import type { PassageTemplate } from '../corpus/passage-template.ts';
import { throwIfCancelled } from '../src/abort.ts';
import { TrawlError } from '../src/errors.ts';
import type { SqlitePassageWriter } from '../src/passages/sqlite-passage-writer.ts';
import type { OnProgress } from './build-events.ts';

/** Passages between two progress reports and looks at the signal. */
const REPORT_EVERY = 2_000;

/**
 * The first stage: every passage into the passage file, before anything is encoded. So a bad line at the end of a corpus
 * is found in minutes and not after hours, and the number of rows is known from then on.
 *
 * @returns the content hash of the passages.
 * @throws TrawlError CORPUS_BAD_LINE, TEMPLATE_INVALID, CORPUS_EMPTY or CANCELLED.
 */
export async function storePassages(
  corpus: Corpus,
  template: PassageTemplate,
  writer: SqlitePassageWriter,
  { onProgress, signal }: { onProgress: OnProgress; signal: AbortSignal | undefined },
): Promise<string> {
  for await (const { id, document, row, location } of corpus) {
    // Encoding comes much later: a column that is missing should be known now.
    template(row, location);
    writer.append({ id, line: location.line, document });
    if (writer.rows % REPORT_EVERY === 0) {
      throwIfCancelled(signal);
      const { readBytes, sizeBytes } = corpus.report;
      onProgress({ stage: 'read', passages: writer.rows, readShare: sizeBytes === 0 ? 1 : readBytes / sizeBytes });
    }
  }
  if (writer.rows === 0) {
    throw new TrawlError(
      'CORPUS_EMPTY',
      'The corpus holds no passage. Look at the files, and at the lines that were skipped.',
    );
  }
  onProgress({ stage: 'read', passages: writer.rows, totalPassages: writer.rows, readShare: 1 });
  return writer.finishRows();
}
