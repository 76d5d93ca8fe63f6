import { ID_SOURCES } from '../../prepare/format-rows.ts';
import { DOCUMENT_FORMATS } from '../../prepare/list-documents.ts';
import { RULE_NAMES } from '../../prepare/open-rule.ts';
import { type PrepareSummary, preparePassages } from '../../prepare/prepare-passages.ts';
import { TrawlError } from '../../src/errors.ts';
import { defineCommand, EXIT } from '../command.ts';
import { formatBytes, formatCount, formatDuration, formatNumberOf } from '../format.ts';
import { prepareProgress } from '../prepare-progress.ts';

export const prepareCommand = defineCommand({
  name: 'prepare',
  summary: 'split documents into passages',
  description:
    "Reads documents (KILT's knowledge source, WikiExtractor's JSON, objects with a title and a text or contents; JSON " +
    'Lines, gzip, zstd) and writes passages as one file that `trawl index` reads. docs/corpora.md describes the rules ' +
    'and says which published vectors belong to which.\n\n' +
    'Everything is written to OUT.partial and takes the name OUT when it is complete. The file does not depend on the ' +
    'number of threads.\n\n' +
    'With --json: {"out", "rule", "documents", "passages", "emptyDocuments", "skippedLines", "skippedExamples", ' +
    '"readBytes", "sizeBytes", "writtenBytes", "sha256", "workers", "elapsedMs"}.',
  positionals: {
    usage: '<documents...>',
    help: { 'documents...': 'Files and directories, read in the order given.' },
    min: 1,
    max: 1000,
  },
  options: {
    out: {
      kind: 'string',
      value: 'FILE',
      help: 'The file to write: .jsonl or .tsv, with .gz or .zst behind it to pack it. Required.',
    },
    rule: {
      kind: 'choice',
      choices: RULE_NAMES,
      default: 'words',
      help: 'How documents are split: by words, sentences or tokens, or row for row as another project does it.',
    },
    size: {
      kind: 'integer',
      min: 1,
      max: 1_000_000,
      help: 'Words (default 100), sentences (6) or tokens (180) of a passage; words of flashrag-words (512).',
    },
    overlap: {
      kind: 'integer',
      min: 0,
      max: 999_999,
      help: 'How many words, sentences or tokens a passage has in common with the one before. Default 0.',
    },
    model: { kind: 'string', value: 'NAME|DIR', help: 'The model whose tokens the rule tokens counts.' },
    'id-from': {
      kind: 'choice',
      choices: ID_SOURCES,
      default: 'position',
      help: 'position: ids count all passages. doc: the id of the document, -, and the number of the passage in it.',
    },
    columns: {
      kind: 'flag',
      default: true,
      help: 'Leave out the columns that say where a JSONL row is from (doc_id, passage, and of KILT pages section).',
    },
    format: { kind: 'choice', choices: DOCUMENT_FORMATS, help: 'Kind of the files, where their names do not tell.' },
    'skip-bad-lines': {
      kind: 'flag',
      help: 'Leave out lines that cannot be used, and count them, instead of stopping at the first.',
    },
    overwrite: { kind: 'flag', help: 'Replace the file at OUT; it stays in place until the new one is complete.' },
    workers: { kind: 'integer', min: 1, max: 1024, help: 'Threads. Default: the cores this process may use.' },
  },
  examples: [
    'trawl prepare kilt_knowledgesource.json --rule rag-r1 --out wiki_kilt_100_really.tsv',
    'trawl prepare extracted/ --rule sentences --size 6 --overlap 3 --out passages.jsonl.zst',
  ],
  async run({ options, positionals, signal, out, note }) {
    const progress = prepareProgress({ silent: options.quiet || options.json });
    try {
      const summary = await preparePassages({
        documents: positionals,
        format: options.format,
        out: required(options.out),
        overwrite: options.overwrite,
        rule: options.rule,
        size: options.size,
        overlap: options.overlap,
        // TRAWL_MODEL may be set for other commands.
        model: options.rule === 'tokens' ? options.model : undefined,
        idFrom: options['id-from'],
        columns: options.columns,
        skipBadLines: options['skip-bad-lines'],
        workers: options.workers,
        onProgress: progress.update,
        signal,
      });
      progress.stop();
      if (options.json) out(JSON.stringify(summary));
      else for (const line of textSummary(summary)) note(line);
      return EXIT.ok;
    } finally {
      progress.stop();
    }
  },
});

function required(out: string | undefined): string {
  if (out !== undefined && out !== '') return out;
  throw new TrawlError('USAGE', 'Name the file to write: --out FILE, for example --out passages.jsonl.');
}

function textSummary(summary: PrepareSummary): string[] {
  const { out, documents, passages, emptyDocuments, writtenBytes, elapsedMs, skippedLines, skippedExamples } = summary;
  const rate = formatCount(Math.round((1000 * passages) / elapsedMs));
  const lines = [
    `${out}: ${formatNumberOf(passages, 'passage')} of ${formatNumberOf(documents, 'document')}, ${formatBytes(writtenBytes)}`,
    `  ${formatDuration(elapsedMs)}, ${rate} passages/s`,
  ];
  if (emptyDocuments > 0) lines.push(`  ${formatNumberOf(emptyDocuments, 'document')} gave no passage`);
  if (skippedLines > 0) {
    lines.push(
      `  ${formatNumberOf(skippedLines, 'bad line')} left out:`,
      ...skippedExamples.map((line) => `    ${line}`),
    );
  }
  return lines;
}
