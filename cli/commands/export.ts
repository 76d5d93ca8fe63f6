import { basename } from 'node:path';
import { type ExportProgress, type ExportSummary, exportIndex } from '../../indexer/export/export-index.ts';
import { formatBytes, formatCount, formatNumberOf } from '../../src/base/format.ts';
import { defined } from '../../src/base/objects.ts';
import { LEXICAL_FIELDS } from '../../src/engine/lexical/lexical-settings.ts';
import * as option from '../options/option.ts';
import { lines } from '../output/lines.ts';
import { type ShowStep, withProgress } from '../output/progress/step-progress.ts';
import { defineCommand, EXIT } from '../program/command.ts';

export const exportCommand = defineCommand({
  name: 'export',
  summary: 'write an index as files for other tools: FAISS, NumPy, Parquet, CIFF, JSON lines',
  description:
    'Writes the vectors of all shards as one FAISS flat index (--faiss) or .npy file (--npy), the passages as JSON lines ' +
    '(--corpus), their ids one per line (--ids), or all of these as Parquet (--parquet). The inverted index of BM25 goes to a ' +
    'CIFF file (--ciff), the exchange format of Lucene, PISA, JASS and Terrier. One command can write several files; ' +
    'line n of the texts belongs to vector n. Each file is written to FILE.partial and renamed when it is complete.\n\n' +
    'Deleted rows are exported too, so that row numbers stay the same, but other tools will find them. --drop-removed omits ' +
    'them from every file (a CIFF file never has them), and --row-numbers then records the row number of every exported row in the index.\n\n' +
    'With --json: {"folder", "rows", "dimension", "metric", "dtype", "deletedRows", "rowsWithoutId", "files": [{"kind", ' +
    '"path", "bytes", "sha256"}, …]}.',
  positionals: { usage: '<index>', help: { index: 'The index directory.' } },
  options: {
    faiss: option.text('FILE', 'A FAISS flat index (IxFI, for l2 IxF2), for faiss.read_index.'),
    npy: option.text('FILE', 'A NumPy matrix, rows × dimension, for numpy.load.'),
    parquet: option.text(
      'FILE',
      'Parquet with the columns id (text), document (the JSON text of the corpus row) and vector (a list of float32).',
    ),
    ciff: option.text(
      'FILE',
      'The inverted index in the Common Index File Format, .ciff or .ciff.gz, without deleted rows. Line n of --ids and --corpus belongs to document n if the index has no deleted rows, or with --drop-removed.',
    ),
    'ciff-field': option.choice(
      LEXICAL_FIELDS,
      'The field whose inverted index --ciff writes. Default: the first one that the index has.',
    ),
    corpus: option.text('FILE', 'The passages as in the corpus, as JSON lines: .jsonl, .jsonl.gz or .jsonl.zst.'),
    ids: option.text(
      'FILE',
      "The ids of the passages, one per line, as in Pyserini's docid file; the row number for a passage without an id. Compressed if the name ends in .gz or .zst.",
    ),
    'row-numbers': option.text(
      'FILE',
      'The row numbers of the exported rows in the index, one per line. Needed with --drop-removed.',
    ),
    float16: option.flag(
      'Write --faiss (as a scalar-quantiser index, IxSQ) and --npy in float16, which halves their size. Fails if a value is not exact in float16; the values of float16 encoders are.',
    ),
    'drop-removed': option.flag('Omit deleted rows.'),
    overwrite: option.flag('Replace existing files. An old file stays in place until the new one is complete.'),
  },
  examples: [
    'trawl export indexes/wiki18 --faiss e5_Flat.index --corpus wiki-18.jsonl',
    'trawl export indexes/wiki18 --faiss pyserini/index --ids pyserini/docid --float16',
    'trawl export indexes/wiki18-words --ciff wiki-18.ciff.gz',
  ],
  async run({ options, positionals, signal, out, note }) {
    const { faiss, npy, parquet, ciff, corpus, ids, 'row-numbers': rowNumbers } = options;
    const files = defined({ faiss, npy, parquet, ciff, corpus, ids, 'row-numbers': rowNumbers });
    const count = Object.keys(files).length;
    const summary = await withProgress(options, (show) =>
      exportIndex({
        index: positionals[0]!,
        files,
        ciffField: options['ciff-field'],
        float16: options.float16,
        dropRemoved: options['drop-removed'],
        overwrite: options.overwrite,
        onProgress: progressOf(show, count),
        signal,
      }),
    );
    const dropped = options['drop-removed'] || (count === 1 && files.ciff !== undefined);
    if (options.json) out(JSON.stringify(summary));
    else for (const line of textSummary(summary, dropped)) note(line);
    return EXIT.ok;
  },
});

function progressOf(show: ShowStep, count: number): (progress: ExportProgress) => void {
  let started = 0;
  let last = '';
  return ({ path, rows, totalRows, writtenBytes }) => {
    if (path !== last) started++;
    last = path;
    const ofFile = totalRows === 0 ? 1 : rows / totalRows;
    show({
      step: `writing ${basename(path)}`,
      share: (started - 1 + ofFile) / count,
      facts: `${formatCount(rows)} of ${formatCount(totalRows)} rows, ${formatBytes(writtenBytes)}`,
    });
  };
}

function textSummary(summary: ExportSummary, dropped: boolean): string[] {
  const { rows, dimension, dtype, metric, deletedRows, rowsWithoutId, files } = summary;
  const fate = dropped
    ? 'omitted: later rows have smaller row numbers than in the index.'
    : 'included, which other tools will find; --drop-removed omits them.';
  return lines(
    ...files.map(({ path, bytes }) => `${path}  ${formatBytes(bytes)}`),
    `${formatCount(rows)} rows${dimension === 0 ? '' : ` of ${dimension} ${dtype}`}`,
    metric === 'cosine' &&
      files.some(({ kind }) => kind === 'faiss') &&
      'The index ranks by cosine, FAISS by inner product: normalise queries and rows in FAISS for the same ranking.',
    deletedRows > 0 && `${formatNumberOf(deletedRows, 'deleted row')} ${fate}`,
    rowsWithoutId !== null &&
      rowsWithoutId > 0 &&
      `${formatNumberOf(rowsWithoutId, 'row')} without an id: --ids has the row number instead.`,
  );
}
