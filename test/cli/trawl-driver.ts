import fs from 'node:fs';
import { syncBuiltinESMExports } from 'node:module';

// The commands run as on one core: a second encoder thread would load the model again, which takes longer than most commands.
const { readFileSync } = fs;
Object.assign(fs, {
  readFileSync(path: string, options: BufferEncoding) {
    const content = readFileSync(path, options);
    return path === '/proc/self/status' ? content.replace(/^(Cpus_allowed_list:\s*\d+).*$/m, '$1') : content;
  },
});
syncBuiltinESMExports();

// From the bundle, as users run it.
const { main } = (await import(
  new URL('../../bundle/main.js', import.meta.url).href
)) as typeof import('../../cli/program/main.ts');

/** A command line to run in this process. */
export interface DriverRequest {
  readonly args: readonly string[];
  readonly cwd: string;
  readonly env: Readonly<Record<string, string>>;
}

/** The result of a command line. */
export interface DriverReply {
  readonly code: number;
  readonly stdout: string;
  readonly stderr: string;
}

/**
 * Runs one command line after another in this process. Starting a process for each would take most of the tests' time.
 */
process.on('message', async ({ args, cwd, env }: DriverRequest) => {
  process.chdir(cwd);
  Object.assign(process.env, env);
  const written = { stdout: '', stderr: '' };
  for (const name of ['stdout', 'stderr'] as const) {
    process[name].write = (text: string | Uint8Array): boolean => {
      written[name] += String(text);
      return true;
    };
  }
  const reply: DriverReply = { code: await main(args), ...written };
  for (const name of Object.keys(env)) delete process.env[name];
  process.send!(reply);
});
process.on('disconnect', () => process.exit(0));
