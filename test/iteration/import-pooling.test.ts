import assert from 'node:assert/strict';
import { mkdirSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { test } from 'node:test';
import { poolingOfImport } from '../../iteration/checkpoint.ts';
import { tempFolder } from '../helpers/temp-folder.ts';

test('a checkpoint that states no pooling is imported with that of the option, else of the index before', async (t) => {
  const folder = await tempFolder(t);
  const writeConfig = (name: string): void =>
    writeFileSync(join(folder, 'config.json'), JSON.stringify({ architectures: [name] }));
  writeConfig('Qwen3Model');
  assert.equal(poolingOfImport(folder, { given: undefined, before: 'last' }), 'last');
  assert.equal(poolingOfImport(folder, { given: 'mean', before: 'last' }), 'mean');
  assert.equal(poolingOfImport(folder, { given: undefined, before: undefined }), undefined);
  assert.equal(poolingOfImport(folder, { given: undefined, before: 'pooler' }), undefined);
  for (const head of ['BertForTokenClassification', 'GPT2LMHeadModel', 'Qwen3ForCausalLM']) {
    writeConfig(head);
    assert.equal(poolingOfImport(folder, { given: undefined, before: 'last' }), undefined, head);
    assert.equal(poolingOfImport(folder, { given: 'cls', before: 'last' }), 'cls', head);
  }
});

test('a checkpoint that states its pooling is imported with no other', async (t) => {
  const folder = await tempFolder(t);
  writeFileSync(join(folder, 'config.json'), JSON.stringify({ architectures: ['BertModel'] }));
  mkdirSync(join(folder, '1_Pooling'));
  writeFileSync(join(folder, '1_Pooling', 'config.json'), '{}');
  assert.equal(poolingOfImport(folder, { given: 'cls', before: 'mean' }), undefined);
  const modules = await tempFolder(t);
  writeFileSync(join(modules, 'modules.json'), '[]');
  assert.equal(poolingOfImport(modules, { given: 'cls', before: 'mean' }), undefined);
});
