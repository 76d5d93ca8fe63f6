import type { Command } from './command.ts';

/** The commands in the order of a first use. A command is loaded when it is called, so that it loads only its own libraries. */
const LOADERS: Readonly<Record<string, () => Promise<Command>>> = {
  demo: async () => (await import('../commands/demo.ts')).demoCommand,
  model: async () => (await import('../commands/model.ts')).modelCommand,
  pull: async () => (await import('../commands/pull.ts')).pullCommand,
  prepare: async () => (await import('../commands/prepare.ts')).prepareCommand,
  index: async () => (await import('../commands/index.ts')).indexCommand,
  import: async () => (await import('../commands/import.ts')).importCommand,
  merge: async () => (await import('../commands/merge.ts')).mergeCommand,
  remove: async () => (await import('../commands/remove.ts')).removeCommand,
  publish: async () => (await import('../commands/publish.ts')).publishCommand,
  serve: async () => (await import('../commands/serve.ts')).serveCommand,
  mcp: async () => (await import('../commands/mcp.ts')).mcpCommand,
  search: async () => (await import('../commands/search.ts')).searchCommand,
  eval: async () => (await import('../commands/eval.ts')).evalCommand,
  replay: async () => (await import('../commands/replay.ts')).replayCommand,
  records: async () => (await import('../commands/records.ts')).recordsCommand,
  'agentic-r': async () => (await import('../commands/agentic-r.ts')).agenticRCommand,
  trajectories: async () => (await import('../commands/trajectories.ts')).trajectoriesCommand,
  sync: async () => (await import('../commands/sync.ts')).syncCommand,
  admin: async () => (await import('../commands/admin.ts')).adminCommand,
  iterate: async () => (await import('../commands/iterate.ts')).iterateCommand,
  mine: async () => (await import('../commands/mine.ts')).mineCommand,
  triage: async () => (await import('../commands/triage.ts')).triageCommand,
  inspect: async () => (await import('../commands/inspect.ts')).inspectCommand,
  optimize: async () => (await import('../commands/optimize.ts')).optimizeCommand,
  export: async () => (await import('../commands/export.ts')).exportCommand,
  verify: async () => (await import('../commands/verify.ts')).verifyCommand,
  doctor: async () => (await import('../commands/doctor.ts')).doctorCommand,
  bench: async () => (await import('../commands/bench.ts')).benchCommand,
  completion: async () => (await import('../commands/completion.ts')).completionCommand,
};

export const COMMAND_NAMES: readonly string[] = Object.keys(LOADERS);

/** Undefined for an unknown name. */
export async function loadCommand(name: string): Promise<Command | undefined> {
  return Object.hasOwn(LOADERS, name) ? LOADERS[name]!() : undefined;
}

export function loadCommands(): Promise<Command[]> {
  return Promise.all(Object.values(LOADERS).map((load) => load()));
}
