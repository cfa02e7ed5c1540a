//! Rules of any slot, called by the names of their WIT package: for vectors of a team, generated
//! questions and exports. The host's own calls are typed, in [`super::rules`].

use std::collections::BTreeMap;

use serde_json::{Map, Value};
use wasmtime::component::types::{ComponentFunc, ComponentItem};
use wasmtime::component::{ComponentExportIndex, InstancePre, Linker, Val};

use super::artifact::{ComponentArtifact, NativeCodeCache};
use super::engine::{EngineSet, LimitedEngine};
use super::error::ComponentError;
use super::faces;
use super::known;
use super::questions::BaseQuestion;
use super::rules::{CompliancePre, compliance};
use super::slot::ContractProbe;
use super::values::{self, NothingLent};
use super::worlds;
use crate::limits::CallLimits;
use crate::metrics::ComponentMeter;
use holdfast_domain::component::{ComponentIdentity, Slot};

/// Functions of the worlds of rules. A later version of an interface may have others.
const FUNCTIONS: [(Slot, &str); 11] = [
    (Slot::Compliance, "evaluate"),
    (Slot::Compliance, "certificate"),
    (Slot::Lifecycle, "envelope"),
    (Slot::Lifecycle, "batch"),
    (Slot::Control, "decide"),
    (Slot::Funding, "check"),
    (Slot::Placement, "inspect"),
    (Slot::Placement, "text"),
    (Slot::Placement, "place"),
    (Slot::Placement, "occurrences"),
    (Slot::Placement, "tags"),
];

/// Loaded rules.
pub struct RulesProgram {
    pub slot: Slot,
    pub identity: ComponentIdentity,
    pre: InstancePre<LimitedEngine<()>>,
    engine: wasmtime::Engine,
    limits: CallLimits,
    meter: ComponentMeter,
    functions: BTreeMap<String, RuleFunction>,
    /// Compliance rules with the types of the host.
    compliance: Option<CompliancePre>,
}

/// Function of the slot's interface.
#[derive(Clone)]
pub struct RuleFunction {
    index: ComponentExportIndex,
    pub signature: ComponentFunc,
}

impl RulesProgram {
    /// Loads rules. They import nothing but typefaces, so every slot links alike.
    ///
    /// # Errors
    /// The component does not link, or does not export its slot's interface.
    pub fn load(
        engines: &EngineSet,
        cache: &NativeCodeCache,
        artifact: &ComponentArtifact,
    ) -> Result<Self, ComponentError> {
        let identity = artifact.identity.clone();
        let unfit = |error: wasmtime::Error| ComponentError::unfit(&identity, &error);
        let engine = engines.of(artifact.slot);
        let component = cache.load(engine, artifact).map_err(unfit)?;
        let interface = format!("{}@{}", artifact.slot.interface(), worlds::VERSION);
        let (item, at) = component
            .get_export(None, &interface)
            .ok_or_else(|| unfit(wasmtime::format_err!("it does not export {interface}")))?;

        let mut functions = BTreeMap::new();
        if let ComponentItem::ComponentInstance(instance) = item {
            for (name, item) in instance.exports(engine) {
                // A component can export further functions, for which there are neither vectors nor exports.
                if FUNCTIONS.contains(&(artifact.slot, name))
                    && let ComponentItem::ComponentFunc(signature) = item.ty
                    && let Some(index) = component.get_export_index(Some(&at), name)
                {
                    functions.insert(name.to_owned(), RuleFunction { index, signature });
                }
            }
        }

        let mut linker = Linker::new(engine);
        faces::lend(&mut linker).map_err(unfit)?;
        let pre = linker.instantiate_pre(&component).map_err(unfit)?;
        // If the types differ from those of this host, the slower calls by name still work.
        let compliance = match artifact.slot {
            Slot::Compliance => CompliancePre::new(pre.clone()).ok(),
            _ => None,
        };

        Ok(Self {
            slot: artifact.slot,
            identity,
            compliance,
            pre,
            engine: engine.clone(),
            limits: engines.limits.of(artifact.slot),
            meter: ComponentMeter::of_candidate(),
            functions,
        })
    }

    /// Returns the functions of the slot's interface, by name.
    pub fn functions(&self) -> &BTreeMap<String, RuleFunction> {
        &self.functions
    }

    /// Evaluates a record in a fresh instance, with the types of the host: in a fifth of the time of a call by name.
    /// `None` for rules of other slots, and if the call trapped or exceeded a limit.
    pub fn evaluate(&self, facts: &compliance::EnvelopeFacts) -> Option<compliance::Evaluation> {
        let typed = self.compliance.as_ref()?;
        let (evaluation, _) = self.probe().measured(|store| {
            let instance = typed.instantiate(&mut *store)?;
            let rules = instance.holdfast_compliance_compliance();
            rules.call_evaluate(store, facts)
        });
        evaluation.ok()
    }

    fn probe(&self) -> ContractProbe<'_> {
        ContractProbe {
            engine: &self.engine,
            limits: &self.limits,
            identity: &self.identity,
            meter: &self.meter,
        }
    }

    /// Converts the parameters and the answer of a call from the host's names to those of the WIT package. `None` if
    /// the component has no such function.
    pub fn with_wit_names(
        &self,
        function: &str,
        given: Map<String, Value>,
        answer: &Value,
    ) -> Option<(Map<String, Value>, Value)> {
        let signature = &self.functions.get(function)?.signature;
        let call = BaseQuestion {
            name: function.to_owned(),
            with: given,
        };
        let given = known::with_wit_names(signature, &call).with;
        Some((given, known::answer_with_wit_names(signature, answer)))
    }

    /// Calls a function in a fresh instance, with parameters by name.
    ///
    /// # Errors
    /// The parameters do not fit, or the call trapped or exceeded a limit.
    pub fn call(&self, function: &str, with: &Map<String, Value>) -> Result<Value, String> {
        let found = self
            .functions
            .get(function)
            .ok_or_else(|| format!("{} has no function {function}", self.slot.interface()))?;
        let parameters = values::parameters(&mut NothingLent, &found.signature, with)?;
        let (results, _) = self.probe().measured(|store| {
            let instance = self.pre.instantiate(&mut *store)?;
            let call = instance
                .get_func(&mut *store, found.index)
                .ok_or_else(|| wasmtime::format_err!("it lost its function {function}"))?;
            let mut results = vec![Val::Bool(false); found.signature.results().len()];
            call.call(&mut *store, &parameters, &mut results)?;
            Ok(results)
        });

        let results = results.map_err(|error| format!("no answer: {}", error.kind))?;
        match results.first() {
            Some(result) => values::written(&mut NothingLent, result),
            None => Ok(Value::Null),
        }
    }
}
