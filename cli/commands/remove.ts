import { createReadStream } from 'node:fs';
import { removePassages } from '../../indexer/update/remove-passages.ts';
import { isNodeError, TrawlError } from '../../src/errors.ts';
import { jsonRemoveSummary, textRemoveSummary } from '../build-summary.ts';
import { defineCommand, EXIT } from '../command.ts';

export const removeCommand = defineCommand({
  name: 'remove',
  summary: 'remove passages from an index by their ids',
  description:
    'Marks every passage that has one of the ids as removed: no search and no look-up finds it any more. Row numbers stay, ' +
    'and nothing is rewritten but the manifest and a bitmap. A server that has the index open keeps what it opened. Ids ' +
    'that no passage has are counted and shown. A removed passage comes back with `trawl index --append` or --update and ' +
    'a corpus that has it.\n\n' +
    'With --json: {"folder", "removed", "unknownIds", "unknownExamples", "rows", "removedRows", "generation", …}.',
  positionals: {
    usage: '<index> [id...]',
    help: { index: 'The index directory.', 'id...': 'Ids.' },
    min: 1,
    max: 10_000,
  },
  options: {
    ids: { kind: 'string', value: 'FILE', help: 'A file with an id a line, as it stands there; - for standard input.' },
  },
  examples: ['trawl remove indexes/wiki18 doc-17 doc-18', 'trawl remove indexes/wiki18 --ids retracted.txt'],
  async run({ options, positionals, signal, out, note }) {
    const [index, ...ids] = positionals;
    if ((ids.length === 0) === (options.ids === undefined)) {
      throw new TrawlError('USAGE', 'Name the ids behind the index, or a file of them with --ids FILE.');
    }
    const summary = await removePassages(index!, options.ids === undefined ? ids : idsOf(options.ids), { signal });
    if (options.json) out(JSON.stringify(jsonRemoveSummary(summary)));
    else for (const line of textRemoveSummary(summary)) note(line);
    return EXIT.ok;
  },
});

/** Lines that are not empty. */
async function* idsOf(path: string): AsyncGenerator<string> {
  const input = path === '-' ? process.stdin.setEncoding('utf8') : createReadStream(path, { encoding: 'utf8' });
  let rest = '';
  try {
    for await (const text of input as AsyncIterable<string>) {
      const lines = `${rest}${text}`.split('\n');
      rest = lines.pop()!;
      yield* lines.map(withoutReturn).filter((line) => line !== '');
    }
  } catch (error) {
    if (!isNodeError(error)) throw error;
    throw new TrawlError('USAGE', `--ids ${path} cannot be read (${error.message}).`, { cause: error });
  }
  if (withoutReturn(rest) !== '') yield withoutReturn(rest);
}

function withoutReturn(line: string): string {
  return line.endsWith('\r') ? line.slice(0, -1) : line;
}
