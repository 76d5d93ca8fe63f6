import { basename } from 'node:path';
import { type ExportProgress, type ExportSummary, exportIndex } from '../../export/export-index.ts';
import { defineCommand, EXIT } from '../command.ts';
import { formatBytes, formatCount } from '../format.ts';
import { stepProgress } from '../step-progress.ts';

export const exportCommand = defineCommand({
  name: 'export',
  summary: 'write an index as files of other tools: FAISS, NumPy, Parquet, JSON lines',
  description:
    'Writes the vectors of all shards as one FAISS flat index (--faiss) or .npy file (--npy), the passages as JSON lines ' +
    '(--corpus), their ids one a line (--ids), or all of it as Parquet (--parquet), any of them at once. Line n of the texts ' +
    'belongs to vector n. Each file is written to FILE.partial, and takes its name when it is complete.\n\n' +
    'Removed rows are among the rows, so that row numbers stay; other tools will find them. --drop-removed leaves them out ' +
    'of every file, and --row-numbers tells which row of the index each of the others is.\n\n' +
    'With --json: {"folder", "rows", "dimension", "metric", "dtype", "removedRows", "rowsWithoutId", "files": [{"kind", ' +
    '"path", "bytes", "sha256"}, …]}.',
  positionals: { usage: '<index>', help: { index: 'The index directory.' }, min: 1, max: 1 },
  options: {
    faiss: { kind: 'string', value: 'FILE', help: 'A FAISS flat index (IxFI, for l2 IxF2), for faiss.read_index.' },
    npy: { kind: 'string', value: 'FILE', help: 'A NumPy matrix, rows × dimension, for numpy.load.' },
    parquet: {
      kind: 'string',
      value: 'FILE',
      help: 'Parquet with the columns id (text), document (the JSON text of the corpus row) and vector (a list of float32).',
    },
    corpus: {
      kind: 'string',
      value: 'FILE',
      help: 'The passages as they were in the corpus, as JSON lines: .jsonl, .jsonl.gz or .jsonl.zst.',
    },
    ids: {
      kind: 'string',
      value: 'FILE',
      help: "The passages' ids, one a line, as Pyserini's docid file; a row without an id has its number. Packed where the name ends in .gz or .zst.",
    },
    'row-numbers': {
      kind: 'string',
      value: 'FILE',
      help: 'Row numbers of the index, one a line: where --drop-removed has moved rows up.',
    },
    float16: {
      kind: 'flag',
      help: 'Half the space for --faiss (a scalar-quantiser index, IxSQ) and --npy. Refused where a value is no float16: those of float16 encoders are.',
    },
    'drop-removed': { kind: 'flag', help: 'Leave out removed rows.' },
    overwrite: { kind: 'flag', help: 'Replace files that exist; each stays in place until the new one is complete.' },
  },
  examples: [
    'trawl export indexes/wiki18 --faiss e5_Flat.index --corpus wiki-18.jsonl',
    'trawl export indexes/wiki18 --faiss pyserini/index --ids pyserini/docid --float16',
  ],
  async run({ options, positionals, signal, out, note }) {
    const progress = stepProgress({ silent: options.quiet || options.json });
    const files = {
      ...(options.faiss === undefined ? {} : { faiss: options.faiss }),
      ...(options.npy === undefined ? {} : { npy: options.npy }),
      ...(options.parquet === undefined ? {} : { parquet: options.parquet }),
      ...(options.corpus === undefined ? {} : { corpus: options.corpus }),
      ...(options.ids === undefined ? {} : { ids: options.ids }),
      ...(options['row-numbers'] === undefined ? {} : { 'row-numbers': options['row-numbers'] }),
    };
    const count = Object.keys(files).length;
    try {
      const summary = await exportIndex({
        index: positionals[0]!,
        files,
        float16: options.float16,
        dropRemoved: options['drop-removed'],
        overwrite: options.overwrite,
        onProgress: showOn(progress.update, count),
        signal,
      });
      progress.stop();
      if (options.json) out(JSON.stringify(summary));
      else for (const line of textSummary(summary, options['drop-removed'])) note(line);
      return EXIT.ok;
    } finally {
      progress.stop();
    }
  },
});

function showOn(update: ReturnType<typeof stepProgress>['update'], count: number): (progress: ExportProgress) => void {
  let begun = 0;
  let last = '';
  return ({ path, rows, totalRows, writtenBytes }) => {
    if (path !== last) begun++;
    last = path;
    const ofFile = totalRows === 0 ? 1 : rows / totalRows;
    update({
      step: `writing ${basename(path)}`,
      share: (begun - 1 + ofFile) / count,
      facts: `${formatCount(rows)} of ${formatCount(totalRows)} rows, ${formatBytes(writtenBytes)}`,
    });
  };
}

function textSummary(summary: ExportSummary, dropped: boolean): string[] {
  const { rows, dimension, dtype, metric, removedRows, rowsWithoutId, files } = summary;
  const lines = files.map(({ path, bytes }) => `${path}  ${formatBytes(bytes)}`);
  lines.push(`${formatCount(rows)} rows of ${dimension} ${dtype}`);
  if (metric === 'cosine' && files.some(({ kind }) => kind === 'faiss')) {
    lines.push(
      'The index ranks by cosine, FAISS by inner product: normalise queries and rows there for the same ranking.',
    );
  }
  if (removedRows > 0) {
    lines.push(
      dropped
        ? `${formatCount(removedRows)} removed rows were left out: the rows behind them have other numbers than in the index.`
        : `${formatCount(removedRows)} removed rows are among them, which other tools will find; --drop-removed leaves them out.`,
    );
  }
  if (rowsWithoutId !== null && rowsWithoutId > 0) {
    lines.push(`${formatCount(rowsWithoutId)} rows have no id: the ids have their row numbers.`);
  }
  return lines;
}
