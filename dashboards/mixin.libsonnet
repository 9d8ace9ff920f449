// The dashboards, the recording rules and the alerts as a monitoring mixin: https://monitoring.mixins.dev.
//
//   local windowstat = (import 'github.com/windowstat/windowstat/dashboards/mixin.libsonnet') + {
//     _config+:: { objectives: [{ resource: 'checkout', threshold: '250ms', share: 0.999 }] },
//   };
//   { 'alerts.json': windowstat.prometheusAlerts }
{
  _config+:: {
    // Where the alerts' runbook_url leads, before the name of the alert.
    runbookBase: 'https://github.com/windowstat/windowstat/blob/main/dashboards/runbook.md#',
    // The share of calls that are no slower than the threshold, of each resource without an objective of its own. Thresholds are
    // those of the rules job_resource_threshold:windowstat_rt_slow:rate5m.
    defaultObjective: { threshold: '1s', share: 0.99 },
    // Of single resources: { resource, threshold, share }.
    objectives: [],
    // The most calls in one second, by resource, of all targets together: { checkout: 400 }.
    callsInOneSecond: {},
  },

  grafanaDashboards+:: {
    'windowstat-overview.json': import 'overview.json',
    'windowstat-resource.json': import 'resource.json',
    'windowstat-self.json': import 'self.json',
  },

  prometheusRules+:: std.parseYaml(importstr 'rules/recording.yaml'),

  prometheusAlerts+::
    local config = $._config;
    local objectives =
      [{
        record: 'windowstat_latency:default_objective',
        labels: { threshold: config.defaultObjective.threshold },
        expr: 'vector(%.10g)' % config.defaultObjective.share,
      }] +
      [{
        record: 'resource:windowstat_latency:objective',
        labels: { resource: o.resource, threshold: o.threshold },
        expr: 'vector(%.10g)' % o.share,
      } for o in config.objectives] +
      [{
        record: 'resource:windowstat_calls_in_one_second:limit',
        labels: { resource: name },
        expr: 'vector(%.10g)' % config.callsInOneSecond[name],
      } for name in std.objectFields(config.callsInOneSecond)];
    local runbook(rule) =
      if 'alert' in rule then rule { annotations+: { runbook_url: config.runbookBase + rule.alert } } else rule;
    local objective(rule) = std.get(rule, 'record', '') == 'windowstat_latency:default_objective';
    {
      groups: [
        group { rules: std.flatMap(function(rule) if objective(rule) then objectives else [runbook(rule)], group.rules) }
        for group in std.parseYaml(importstr 'rules/alerts.yaml').groups
      ],
    },
}
