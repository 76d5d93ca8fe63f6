import { ElasticsearchError } from '../elasticsearch-error.ts';

/** What a folder, a metric label and a log line can have, too. Elasticsearch allows a few more characters. */
const NAME = /^[a-z0-9][a-z0-9._-]{0,63}$/;

/** Why a new index cannot have a name, in Elasticsearch's words where it refuses it too; undefined if it can. */
export function nameProblem(name: string): string | undefined {
  if (name === '') return 'must not be empty';
  if (name !== name.toLowerCase()) return 'must be lowercase';
  if (name === '.' || name === '..') return "must not be '.' or '..'";
  if (/^[_+-]/.test(name)) return "must not start with '_', '-', or '+'";
  const bad = /[\s"*\\<|,>/?#:]/.exec(name)?.[0];
  if (bad !== undefined) return `must not contain the character [${bad}]`;
  if (name.length > 64) return `has ${name.length} characters; at most 64 are allowed`;
  if (NAME.test(name)) return undefined;
  return 'must begin with a letter from a to z or a digit, and have only these, dots, dashes and underscores';
}

/** @throws ElasticsearchError invalid_index_name_exception. */
export function checkIndexName(name: string): void {
  const problem = nameProblem(name);
  if (problem === undefined) return;
  const shown = name.slice(0, 100);
  throw new ElasticsearchError(400, {
    type: 'invalid_index_name_exception',
    reason: `Invalid index name [${shown}], ${problem}`,
    index_uuid: '_na_',
    index: shown,
  });
}
