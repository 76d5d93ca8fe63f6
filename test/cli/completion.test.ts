import assert from 'node:assert/strict';
import { spawnSync } from 'node:child_process';
import { mkdirSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { test } from 'node:test';
import { loadCommands } from '../../cli/program/commands.ts';
import { bashCompletion, completionCommands, fishCompletion, zshCompletion } from '../../cli/program/completion.ts';
import { manPage } from '../../cli/program/man-page.ts';
import { packageRoot } from '../../src/base/package-root.ts';
import { fileFolder, runTrawl } from './run-trawl.ts';

const commands = await loadCommands();
const words = completionCommands(commands);
const folder = await fileFolder();
mkdirSync(join(folder, 'wiki18'));
writeFileSync(join(folder, 'wiki 18.jsonl'), '');
const scripts = { bash: bashCompletion(words), zsh: zshCompletion(words), fish: fishCompletion(words) };
for (const [shell, text] of Object.entries(scripts)) writeFileSync(join(folder, `${shell}.script`), text);

function without(shell: string): string | false {
  return spawnSync('sh', ['-c', `command -v ${shell}`]).status === 0 ? false : `${shell} is not installed`;
}

/** What bash offers for the last word of a command line. */
function completions(line: readonly string[]): string[] {
  const script = `. ./bash.script
COMP_WORDS=("$@"); COMP_CWORD=$(($# - 1))
_trawl
printf '%s\\n' "\${COMPREPLY[@]}"`;
  const { stdout, stderr, status } = spawnSync('bash', ['--norc', '-c', script, 'bash', ...line], {
    cwd: folder,
    encoding: 'utf8',
  });
  assert.deepEqual([status, stderr], [0, '']);
  return stdout.split('\n').filter(Boolean).sort();
}

test('bash completes commands, options, their values, actions and files', { skip: without('bash') }, () => {
  assert.deepEqual(completions(['trawl', 'mo']), ['model']);
  assert.deepEqual(
    completions(['trawl', '']),
    [...commands.map(({ name }) => name), 'help', '--help', '--version'].sort(),
  );
  assert.deepEqual(completions(['trawl', 'help', 'ver']), ['verify']);
  assert.deepEqual(completions(['trawl', 'serve', 'indexes', '--por']), ['--port']);
  assert.deepEqual(completions(['trawl', 'serve', '--mode', '']), ['bm25', 'dense', 'hybrid']);
  assert.deepEqual(completions(['trawl', 'serve', '--mode', '=', 'h']), ['hybrid'], 'bash splits at =');
  assert.deepEqual(completions(['trawl', 'model', 'a']), ['add']);
  assert.deepEqual(completions(['trawl', 'serve', 'wiki']), ['wiki18', 'wiki 18.jsonl'].sort());
  assert.deepEqual(completions(['trawl', 'serve', '--port', '']), [], 'a number is not completed');
  assert.deepEqual(completions(['trawl', 'nonsense', '--']), []);
});

for (const command of commands) {
  test(`bash offers every option of trawl ${command.name} and no other`, { skip: without('bash') }, () => {
    const options = Object.entries(command.options).map(([name, spec]) =>
      spec.type === 'flag' && spec.default === true ? `--no-${name}` : `--${name}`,
    );
    assert.deepEqual(completions(['trawl', command.name, '--']), [...options, '--help'].sort());
  });
}

for (const shell of ['bash', 'zsh', 'fish'] as const) {
  test(`${shell} accepts its script`, { skip: without(shell) }, () => {
    const { status, stderr } = spawnSync(shell, ['-n', join(folder, `${shell}.script`)], { encoding: 'utf8' });
    assert.deepEqual([status, stderr], [0, '']);
  });
}

test('zsh completes commands, options, their values, actions and files', { skip: without('zsh') }, () => {
  const program = join(packageRoot, 'test', 'cli', 'zsh-completions.zsh');
  const offered = (line: string): string[] => {
    const { stdout, stderr, status } = spawnSync('zsh', ['-f', program, join(folder, 'zsh.script'), line], {
      cwd: folder,
      encoding: 'utf8',
    });
    assert.deepEqual([status, stderr], [0, '']);
    return stdout.split('\n').filter(Boolean).sort();
  };
  assert.deepEqual(offered('trawl '), commands.map(({ name }) => name).sort());
  assert.deepEqual(offered('trawl help ver'), ['verify']);
  assert.deepEqual(offered('trawl serve indexes --por'), ['--port']);
  const options = words.find(({ name }) => name === 'serve')!.options.map(({ name }) => `--${name}`);
  assert.deepEqual(offered('trawl serve --'), options.sort());
  assert.deepEqual(offered('trawl serve --mode '), ['bm25', 'dense', 'hybrid']);
  assert.deepEqual(offered('trawl serve --mode=h'), ['--mode=hybrid']);
  assert.deepEqual(offered('trawl model a'), ['add']);
  assert.deepEqual(offered('trawl serve wiki'), ['wiki18', 'wiki\\ 18.jsonl'].sort());
  assert.deepEqual(offered('trawl serve --port '), [], 'a number is not completed');
});

test('fish completes commands, options and values', { skip: without('fish') }, () => {
  const offered = (line: string): string[] => {
    const script = `source ${join(folder, 'fish.script')}; complete -C '${line}'`;
    const { stdout } = spawnSync('fish', ['--no-config', '-c', script], { encoding: 'utf8' });
    return stdout.split('\n').flatMap((text) => text.split('\t')[0] || []);
  };
  assert.deepEqual(offered('trawl mo'), ['model']);
  assert.ok(offered('trawl serve --po').includes('--port'));
  assert.deepEqual(offered('trawl serve --mode ').sort(), ['bm25', 'dense', 'hybrid']);
});

test('trawl completion prints the script of a shell, and refuses another shell', async () => {
  assert.equal((await runTrawl(['completion', 'bash'])).stdout, `${scripts.bash}\n`);
  const { code, stderr } = await runTrawl(['completion', 'tcsh']);
  assert.equal(code, 2);
  assert.match(stderr, /Unknown shell tcsh; expected one of bash, zsh, fish\./);
});

test('the manual page has every command and option, and man formats it without a warning', {
  skip: without('man'),
}, () => {
  const file = join(folder, 'trawl.1');
  writeFileSync(file, manPage(commands, '1.2.3'));
  const { stdout, stderr, status } = spawnSync('man', ['--warnings', '-l', file], {
    encoding: 'utf8',
    env: { ...process.env, MANWIDTH: '10000', MAN_KEEP_FORMATTING: '', LC_ALL: 'C.UTF-8', PAGER: 'cat' },
  });
  assert.deepEqual([status, stderr], [0, '']);
  for (const command of commands) {
    assert.ok(stdout.includes(`TRAWL ${command.name.toUpperCase()}`), command.name);
    for (const name of Object.keys(command.options)) assert.match(stdout, new RegExp(`--(no-)?${name}\\b`));
  }
});
