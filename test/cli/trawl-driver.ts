import { main } from '../../cli/main.ts';

/** A command line to run in this process, and how it ended. */
export interface DriverRequest {
  readonly args: readonly string[];
  readonly cwd: string;
  readonly env: Readonly<Record<string, string>>;
}

export interface DriverReply {
  readonly code: number;
  readonly stdout: string;
  readonly stderr: string;
}

/**
 * A process that runs one command line after another, as they are sent to it: starting a process for each would take most
 * of the tests' time.
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
