import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { type TestContext, test } from 'node:test';
import { readViews } from '../../../src/index/views/read-views.ts';
import type { ViewDefinition } from '../../../src/index/views/view-definition.ts';
import assert from '../../helpers/assert.ts';
import { tempFolder } from '../../helpers/temp-folder.ts';
import { trawlError } from '../../helpers/trawl-error.ts';

/** Reads a file of views with this content, beside a list of ids. */
async function read(t: TestContext, content: unknown): Promise<readonly ViewDefinition[]> {
  const folder = await tempFolder(t);
  writeFileSync(join(folder, 'ids.txt'), 'a\n');
  const file = join(folder, 'views.json');
  writeFileSync(file, typeof content === 'string' ? content : JSON.stringify(content));
  return readViews(file);
}

test('a file of views has every part, with paths relative to its folder', async (t) => {
  const [train, past] = await read(t, {
    train: {
      blockIds: 'ids.txt',
      blockTitles: ['ids.txt', './ids.txt'],
      rows: 'ids.txt',
      generation: 'abc',
      indexes: ['a'],
    },
    past: { filter: "source = 'wiki'", date: { column: 'date', before: '2023-10-01', undated: 'drop' } },
  });
  const path = train!.rows!;
  assert.match(path, /^\/.*\/ids\.txt$/);
  assert.deepEqual(train, {
    name: 'train',
    blockIds: [path],
    blockTitles: [path, path],
    rows: path,
    generation: 'abc',
    indexes: ['a'],
  });
  assert.deepEqual(past, {
    name: 'past',
    filter: { column: 'source', op: '=', value: 'wiki' },
    date: { column: 'date', before: '2023-10-01', undated: 'drop' },
  });
});

test('a fault is named with the file, the view, the place and what is expected', async (t) => {
  const date = { column: 'date', before: '2023-10-01', undated: 'keep' };
  for (const [content, message] of [
    ['{', /views\.json: not valid JSON: /],
    [{}, /expected an object with one view for each name/],
    [[], /expected an object with one view for each name/],
    [{ 'a b': { blockIds: 'ids.txt' } }, /"a b" cannot be the name of a view; expected 1 to 64 letters/],
    [{ train: 7 }, /view "train": found 7, expected an object/],
    [{ train: {} }, /view "train": it has all passages; expected at least one of filter, date, rows/],
    [{ train: { indexes: ['a'] } }, /it has all passages/],
    [{ train: { blockIDs: 'ids.txt' } }, /the view has the field "blockIDs"; expected indexes, filter/],
    [{ train: { filter: 'source =' } }, /view "train": filter: The filter cannot be read at character 9/],
    [{ train: { filter: { column: 'a', op: '~' } } }, /view "train": filter: filter\.op: found "~"/],
    [{ train: { date: '2023' } }, /date: found "2023", expected an object with column, before and undated/],
    [{ train: { date: { ...date, after: 'x' } } }, /date has the field "after"; expected column, before, undated/],
    [
      { train: { date: { ...date, before: '2023-13-01' } } },
      /date\.before: found "2023-13-01", expected a date such as/,
    ],
    // The rule for passages without a date has no default.
    [
      { train: { date: { column: 'date', before: '2023-10-01' } } },
      /date\.undated: found nothing, expected "keep" or "drop"/,
    ],
    [{ train: { date: { ...date, undated: true } } }, /date\.undated: found true, expected "keep" or "drop"/],
    [{ train: { date: { ...date, column: '' } } }, /date\.column: found "", expected a text/],
    [{ train: { blockIds: 'other.txt' } }, /blockIds: \/.*\/other\.txt cannot be read \(ENOENT/],
    [{ train: { blockTitles: [] } }, /blockTitles: found an empty list, expected a file or a list of files/],
    [{ train: { blockIds: 'ids.txt', unmatched: 'warn' } }, /unmatched: found "warn", expected "refuse" or "allow"/],
    [{ train: { blockTitles: [7] } }, /blockTitles: found 7, expected a text/],
    [{ train: { rows: 'ids.txt' } }, /rows and generation belong together/],
    [{ train: { blockIds: 'ids.txt', generation: 'abc' } }, /rows and generation belong together/],
    [{ train: { blockIds: 'ids.txt', indexes: [] } }, /indexes: found \[\], expected a list of at least one name/],
  ] as const) {
    await assert.rejects(read(t, content), trawlError('CONFIG_INVALID', message), JSON.stringify(content));
  }
  assert.throws(
    () => readViews('/no/such/views.json'),
    trawlError('CONFIG_INVALID', /^\/no\/such\/views\.json: the file of views does not exist/),
  );
});
