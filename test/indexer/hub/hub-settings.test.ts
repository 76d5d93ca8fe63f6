import assert from 'node:assert/strict';
import { mkdirSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { type TestContext, test } from 'node:test';
import { readHubSettings } from '../../../indexer/hub/hub-settings.ts';
import type { TrawlError } from '../../../src/base/errors.ts';
import { tempFolder } from '../../helpers/temp-folder.ts';
import { trawlError } from '../../helpers/trawl-error.ts';

const NAMES = [
  'HF_ENDPOINT',
  'HF_TOKEN',
  'HUGGING_FACE_HUB_TOKEN',
  'HF_TOKEN_PATH',
  'HF_HOME',
  'XDG_CACHE_HOME',
  'HOME',
  'HF_HUB_OFFLINE',
  'TRANSFORMERS_OFFLINE',
  'HF_HUB_DISABLE_IMPLICIT_TOKEN',
];

/** The settings from these variables alone: the other variables of the hub are unset meanwhile. */
async function settingsWith(t: TestContext, variables: Record<string, string>) {
  const before = NAMES.map((name) => [name, process.env[name]] as const);
  t.after(() => restore(before));
  for (const name of NAMES) delete process.env[name];
  Object.assign(process.env, { HOME: '/nonexistent', ...variables });
  try {
    return await readHubSettings();
  } finally {
    restore(before);
  }
}

function restore(values: readonly (readonly [string, string | undefined])[]): void {
  for (const [name, value] of values) {
    if (value === undefined) delete process.env[name];
    else process.env[name] = value;
  }
}

test('if no variable is set, the public hub is used without a token', async (t) => {
  assert.deepEqual(await settingsWith(t, {}), { endpoint: 'https://huggingface.co', token: undefined, offline: false });
});

test('HF_ENDPOINT is used without its trailing slash, and refused if it is not an address', async (t) => {
  assert.equal(
    (await settingsWith(t, { HF_ENDPOINT: 'https://hub.example/mirror/' })).endpoint,
    'https://hub.example/mirror',
  );
  assert.equal((await settingsWith(t, { HF_ENDPOINT: '' })).endpoint, 'https://huggingface.co');
  for (const wrong of ['hub.example', 'file:///x', 'https://', 'https://x?y=1', 'ftp://x']) {
    await assert.rejects(
      settingsWith(t, { HF_ENDPOINT: wrong }),
      trawlError('CONFIG_INVALID', /HF_ENDPOINT is/),
      wrong,
    );
  }
});

test('the token is HF_TOKEN, or else is read from the file of `hf auth login` in the folder that the variables name', async (t) => {
  const folder = await tempFolder(t);
  const write = (path: string, text: string): void => {
    mkdirSync(join(folder, path, '..'), { recursive: true });
    writeFileSync(join(folder, path), text);
  };
  write('home/token', 'hf_home\n');
  write('cache/huggingface/token', 'hf_cache\n');
  write('user/.cache/huggingface/token', 'hf_user');
  write('user/mine', 'hf_mine');
  write('empty', '\n');
  const token = async (variables: Record<string, string>) => (await settingsWith(t, variables)).token;
  assert.equal(await token({ HF_TOKEN: ' hf_a\n', HF_HOME: join(folder, 'home') }), 'hf_a');
  assert.equal(await token({ HF_TOKEN: 'not-with-hf' }), 'not-with-hf');
  assert.equal(await token({ HUGGING_FACE_HUB_TOKEN: 'hf_old' }), 'hf_old');
  assert.equal(await token({ HF_TOKEN: '', HF_HOME: join(folder, 'home') }), 'hf_home');
  assert.equal(await token({ XDG_CACHE_HOME: join(folder, 'cache') }), 'hf_cache');
  assert.equal(await token({ HOME: join(folder, 'user') }), 'hf_user');
  assert.equal(await token({ HOME: join(folder, 'user'), XDG_CACHE_HOME: '' }), 'hf_user');
  assert.equal(await token({ HOME: join(folder, 'user'), HF_TOKEN_PATH: '~/mine' }), 'hf_mine');
  assert.equal(await token({ HF_TOKEN_PATH: join(folder, 'empty') }), undefined);
  assert.equal(await token({ HF_TOKEN_PATH: join(folder, 'none'), HF_HOME: join(folder, 'home') }), undefined);
  assert.equal(await token({ HF_TOKEN: 'hf_a', HF_HUB_DISABLE_IMPLICIT_TOKEN: '1' }), undefined);
  assert.equal(await token({ HF_TOKEN: 'hf_a', HF_HUB_DISABLE_IMPLICIT_TOKEN: '0' }), 'hf_a');
});

test('a token with a line break is refused, and the error does not contain the token', async (t) => {
  const refused = await settingsWith(t, { HF_TOKEN: 'hf_secret\r\nx-more: 1' }).then(
    () => undefined,
    (error: Error) => error,
  );
  trawlError('CONFIG_INVALID', /token in HF_TOKEN/)(refused);
  assert.doesNotMatch(refused!.message, /secret/);
});

test('HF_HUB_OFFLINE and TRANSFORMERS_OFFLINE each set offline mode, with the values of huggingface_hub', async (t) => {
  for (const value of ['1', 'true', 'YES', 'on']) {
    assert.equal((await settingsWith(t, { HF_HUB_OFFLINE: value })).offline, true, value);
    assert.equal((await settingsWith(t, { TRANSFORMERS_OFFLINE: value })).offline, true, value);
  }
  for (const value of ['0', 'false', '', 'off']) {
    assert.equal((await settingsWith(t, { HF_HUB_OFFLINE: value })).offline, false, value);
  }
});

test('a password in HF_ENDPOINT is refused, and the error does not contain it', async (t) => {
  await assert.rejects(settingsWith(t, { HF_ENDPOINT: 'http://me:secret@hub.example' }), (error: TrawlError) => {
    assert.equal(error.code, 'CONFIG_INVALID');
    assert.doesNotMatch(error.message, /secret|me:/);
    return true;
  });
});
