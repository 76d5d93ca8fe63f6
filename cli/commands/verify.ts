import { verifyIndex } from '../../indexer/verify-index.ts';
import { asTrawlError } from '../../src/errors.ts';
import { defineCommand, EXIT } from '../command.ts';

export const verifyCommand = defineCommand({
  name: 'verify',
  summary: 'read every byte of an index and compare it with its checksums',
  description:
    'Checks the sha256 of every file, the content hash and every page of the passage file, and that all vectors are finite. ' +
    'Exit code 3 when something is wrong.\n\n' +
    'With --json: {"folder", "problems"}, problems being sentences.',
  positionals: { usage: '<index>', help: { index: 'The index directory.' }, min: 1, max: 1 },
  options: {},
  examples: ['trawl verify indexes/sample'],
  async run({ options, positionals, signal, out, note }) {
    const folder = positionals[0]!;
    const problems = await problemsOf(folder, { onStep: note, signal });
    if (options.json) out(JSON.stringify({ folder, problems }));
    else out(problems.length === 0 ? `${folder}: everything is as it was written` : problems.join('\n'));
    return problems.length === 0 ? EXIT.ok : EXIT.problems;
  },
});

/** Files that are missing or have the wrong size or header are problems found, too. That there is no index is not. */
async function problemsOf(folder: string, options: Parameters<typeof verifyIndex>[1]): Promise<string[]> {
  try {
    return await verifyIndex(folder, options);
  } catch (error) {
    const { code, message } = asTrawlError(error);
    if (code.startsWith('INDEX_') && code !== 'INDEX_NOT_FOUND') return [message];
    throw error;
  }
}
