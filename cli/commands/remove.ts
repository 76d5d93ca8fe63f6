import { removePassages } from '../../indexer/update/remove-passages.ts';
import { usageError } from '../../src/base/errors.ts';
import { readTextLines } from '../../src/base/files/read-text-lines.ts';
import { jsonRemoveSummary, textRemoveSummary } from '../building/build-summary.ts';
import * as option from '../options/option.ts';
import { defineCommand, EXIT } from '../program/command.ts';

export const removeCommand = defineCommand({
  name: 'remove',
  summary: 'delete passages of an index by their ids',
  description:
    'Deletes every passage with one of the ids: searches and look-ups no longer find it. Row numbers do not change; only the ' +
    'manifest and a bitmap of deleted rows are written. A server that has the index open keeps the old version until it ' +
    'reloads. Ids without a passage are counted and shown. `trawl index --append` or --update with a corpus that contains a ' +
    'deleted passage makes its row live again. `trawl optimize --compact` frees the disk space.\n\n' +
    'With --json: {"folder", "removed", "unknownIds", "unknownExamples", "rows", "deletedRows", "generation", …}.',
  positionals: {
    usage: '<index> [id...]',
    help: { index: 'The index directory.', 'id...': 'Ids of passages.' },
    max: 10_000,
  },
  options: {
    ids: option.text('FILE', 'File with one id per line; - for standard input.'),
  },
  examples: ['trawl remove indexes/wiki18 doc-17 doc-18', 'trawl remove indexes/wiki18 --ids retracted.txt'],
  async run({ options, positionals, signal, out, note }) {
    const [index, ...ids] = positionals;
    if ((ids.length === 0) === (options.ids === undefined)) {
      throw usageError('Expected either ids or --ids FILE.');
    }
    const summary = await removePassages(index!, options.ids === undefined ? ids : idsOf(options.ids), { signal });
    if (options.json) out(JSON.stringify(jsonRemoveSummary(summary)));
    else for (const line of textRemoveSummary(summary)) note(line);
    return EXIT.ok;
  },
});

/** The lines of a file or of standard input. */
async function* idsOf(path: string): AsyncGenerator<string> {
  const lines = path === '-' ? readTextLines('standard input', process.stdin) : readTextLines(path);
  for await (const { text } of lines) yield text;
}
