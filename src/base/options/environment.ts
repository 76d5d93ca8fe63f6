import { homedir } from 'node:os';
import { join } from 'node:path';

/** Environment variables that other programs define; Trawl gives them the same meaning. */
type ForeignVariable =
  | `HF_${string}`
  | 'HUGGING_FACE_HUB_TOKEN'
  | 'JAVA_HOME'
  | 'PATH'
  | 'TRANSFORMERS_OFFLINE'
  | 'XDG_CACHE_HOME';

/** An environment variable that is not an option of a command, such as TRAWL_ISA. Only this folder reads the environment. */
export function environmentVariable(name: `TRAWL_${string}` | ForeignVariable): string | undefined {
  return process.env[name];
}

/** The variable of a proxy that this process does not use, because Node.js has to be told to; undefined if there is none. */
export function unusedProxy(): string | undefined {
  if (process.env['NODE_USE_ENV_PROXY'] === '1') return undefined;
  return ['HTTPS_PROXY', 'HTTP_PROXY', 'ALL_PROXY'].find(
    (name) => process.env[name] || process.env[name.toLowerCase()],
  );
}

/** Takes a variable out of the environment of this process, and so of the programs that it starts. */
export function takenVariable(name: string): string | undefined {
  const value = process.env[name];
  delete process.env[name];
  return value;
}

/** The environment of this process with other values of some variables, for a program that it starts. */
export function environmentWith(variables: Readonly<Record<string, string>>): NodeJS.ProcessEnv {
  return { ...process.env, ...variables };
}

/** The folder of a program in the user's cache: `$XDG_CACHE_HOME/name`, or `~/.cache/name` if the variable is not set or empty. */
export function cacheFolder(name: string): string {
  return join(environmentVariable('XDG_CACHE_HOME') || join(homedir(), '.cache'), name);
}

/**
 * Makes cuBLAS multiply float32 as float32: by default onnxruntime lets it round the factors to 10 bits (TF32). The libraries read
 * the variable when they load, so this comes before the first session of the process. A value that is set stays.
 */
export function keepFloat32OnCuda(): void {
  process.env['NVIDIA_TF32_OVERRIDE'] ??= '0';
}

/**
 * Switches onnxruntime's telemetry off, unless the variable is already set. Since version 1.29, onnxruntime reports sessions and
 * machines to Microsoft on Linux and macOS too. It reads the variable when it is first used in a process, from the environment of
 * the main thread (worker threads have a copy), so call this function on the main thread before onnxruntime is loaded.
 */
export function disableTelemetry(): void {
  process.env.ORT_DISABLE_TELEMETRY ??= '1';
}
